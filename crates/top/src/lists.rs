//! The four tables: classes, elephants, requests, decisions. Texts from outside are escaped when
//! the tables are made.

use std::borrow::Cow;

use bywash_api::{ClassStatus, Elephant, Request};
use bywash_control::{Note, Origin, State};
use bywash_terminal::Align;
use bywash_terminal::text::escaped;

use super::amount::{NONE, bar, clock, duration, percent, rate, short, used};
use super::grid::{Cell, Column, Grid, Row};
use super::sums::Sums;

const fn left(head: &'static str, short: &'static str, narrow: usize, wide: usize) -> Column {
    Column { head, short, align: Align::Left, narrow, wide }
}

const fn right(head: &'static str, short: &'static str, narrow: usize, wide: usize) -> Column {
    Column { head, short, align: Align::Right, narrow, wide }
}

/// The columns of the table of classes. Their narrow widths add up to 79 columns of the terminal;
/// the cursor takes one more.
const CLASSES: &[Column] = &[
    left("CLASS", "CLASS", 9, 13),
    left("TIER", "T", 1, 11),
    right("IN/S", "IN/S", 5, 6),
    right("SERVED", "SRV", 3, 6),
    right("LATE", "LATE", 4, 4),
    right("ORPHANED", "ORPH", 4, 8),
    right("REFUSED", "REFU", 4, 7),
    right("TERM", "TERM", 4, 4),
    right("ERR", "ERR", 3, 4),
    right("P50", "P50", 5, 6),
    right("P99", "P99", 5, 6),
    left("QUEUE", "QUEUE", 7, 15),
    right("UTIL", "UTIL", 4, 6),
    left("MODE", "MODE", 8, 13),
];

const ELEPHANTS: &[Column] = &[
    right("NO", "NO", 2, 3),
    left("REQUESTS", "REQUESTS", 18, 30),
    left("RESOURCE", "RESOURCE", 10, 12),
    right("COST", "COST", 6, 8),
    left("95% INTERVAL", "95% INTERVAL", 14, 17),
    right("IN/S", "IN/S", 5, 6),
    right("SHARE%", "SH%", 3, 6),
    left("STATE", "STATE", 14, 24),
];

const REQUESTS: &[Column] = &[
    left("ENDED", "ENDED", 8, 8),
    left("OUTCOME", "OUTCOME", 10, 14),
    left("CLASS", "CLASS", 8, 14),
    left("DECISION", "", 0, 10),
    left("REASON", "REASON", 11, 16),
    right("WAITED", "WAIT", 5, 6),
    right("RAN", "RAN", 5, 6),
    right("STATUS", "ST", 3, 6),
    left("REQUEST", "REQUEST", 22, 30),
];

const DECISIONS: &[Column] = &[
    left("WHEN", "WHEN", 11, 11),
    left("ACTION", "ACTION", 10, 10),
    left("SUBJECT", "SUBJECT", 20, 34),
    left("AUTHOR", "AUTHOR", 8, 14),
    left("REASON", "REASON", 14, 30),
    left("UNTIL", "UNTIL", 11, 11),
];

/// The name and the meaning of each column of the table of classes, for the help.
pub(super) const MEANS: &[(&str, &str)] = &[
    ("IN/S", "requests that ended, per second"),
    ("SERVED, LATE", "% answered in time; % answered after the patience of the class"),
    ("ORPHANED", "% whose client left"),
    ("REFUSED", "% shed, expired or throttled"),
    ("TERM, ERR", "% terminated; % with the outcome upstream_error"),
    ("P50, P99", "response times of answers, to one part in 16"),
    ("QUEUE", "requests that wait now, and their part of all waiting requests"),
    ("MODE", "mode, and for which part of the visitors; * marks an override of the file"),
];

/// A class with its sums over the window.
pub(super) struct Class<'m> {
    pub(super) of: &'m ClassStatus,
    pub(super) sums: Sums,
    pub(super) overridden: bool,
}

pub(super) fn classes(classes: &[Class<'_>], waiting: u32) -> Grid {
    let rows = classes
        .iter()
        .map(|class| Row { id: class.of.name.clone(), cells: of_class(class, waiting) });
    Grid { columns: CLASSES, fills: 0, rows: rows.collect(), none: "No class matches the filter." }
}

fn of_class(Class { of, sums, overridden }: &Class<'_>, waiting: u32) -> Vec<Cell> {
    let outcomes = &sums.outcomes;
    let ended = sums.per_second(sums.ended());
    let part = |count: u64| {
        let share = sums.share(count);
        Cell::number(share, percent(share))
    };
    let time = |ms: Option<f32>| {
        let ms = ms.map(f64::from);
        Cell::number(ms, ms.map_or(NONE.into(), duration))
    };
    let queue = |columns| bar(of.waiting, waiting, columns);
    vec![
        Cell::text(escaped(&of.name)),
        Cell::text(escaped(&of.tier)).or(initial(&of.tier)),
        Cell::number(ended, rate(ended)),
        part(outcomes.served),
        part(outcomes.late),
        part(outcomes.orphaned),
        part(sums.refused()),
        part(outcomes.terminated),
        part(outcomes.upstream_error),
        time(sums.p50),
        time(sums.p99),
        Cell::number(f64::from(of.waiting), format!("{} {}", queue(10), of.waiting)).or(format!(
            "{}{:>4}",
            queue(3),
            of.waiting
        )),
        Cell::number(of.utility, short(of.utility)),
        mode(of, *overridden),
    ]
}

fn initial(tier: &str) -> String {
    escaped(tier)
        .chars()
        .next()
        .map(|first| first.to_ascii_uppercase().to_string())
        .unwrap_or_default()
}

fn mode(of: &ClassStatus, overridden: bool) -> Cell {
    let star = if overridden { "*" } else { "" };
    let mode = escaped(&of.mode);
    if mode != "enforce" || of.enforce_percent >= 100 {
        return Cell::text(format!("{mode}{star}"));
    }
    Cell::text(format!("{mode} {}%{star}", of.enforce_percent))
        .or(format!("enf {}%{star}", of.enforce_percent))
}

pub(super) fn elephants(elephants: &[Elephant]) -> Grid {
    let row = |one: &Elephant| Row { id: one.entry.number.to_string(), cells: of_elephant(one) };
    Grid {
        columns: ELEPHANTS,
        fills: 1,
        rows: elephants.iter().map(row).collect(),
        none: "There is no elephant, or none matches the filter.",
    }
}

fn of_elephant(one: &Elephant) -> Vec<Cell> {
    let entry = &one.entry;
    let found = entry.found.as_ref();
    let amount = |units: f64| found.map_or(NONE.into(), |found| used(found.consists_of, units));
    let number = |value: Option<f64>, text: fn(f64) -> String| {
        Cell::number(value, value.map_or(NONE.into(), text))
    };
    let cost = found.map(|found| found.cost);
    let interval = found.map_or(NONE.into(), |found| {
        let [low, high] = found.interval;
        // An elephant's use of slots, or of bytes of the gateway, is counted and not estimated. So
        // it has no interval.
        if low.total_cmp(&high).is_eq() {
            return "counted".into();
        }
        format!("{} to {}", amount(low), amount(high))
    });
    let is_provisional = found.is_some_and(|found| found.provisional);
    vec![
        Cell::number(f64::from(entry.number), entry.number.to_string()),
        Cell::text(escaped(&entry.pattern)),
        Cell::text(found.map_or(NONE.into(), |found| escaped(&found.resource))),
        Cell::number(cost, cost.map_or(NONE.into(), amount)),
        Cell::text(interval),
        number(found.map(|found| found.rate), rate),
        number(found.map(|found| found.share), |share| percent(Some(share))),
        state(&entry.state, is_provisional),
    ]
}

/// Returns a cell with the state of an elephant, and the end of that state.
fn state(state: &State, is_provisional: bool) -> Cell {
    let rule = match state {
        State::Proposed if is_provisional => {
            return Cell::text("proposed, provisional").or("provisional");
        }
        State::Proposed => return Cell::text("proposed"),
        State::Rejected { until, .. } => {
            return Cell::text(format!("rejected until {}", moment(&until.to_string())))
                .or("rejected");
        }
        State::Ruled(rule) => rule,
    };
    let word = match rule.origin {
        Origin::Operator => "held",
        Origin::Trial => "tried",
        Origin::Auto => "held (auto)",
        Origin::File => "held (file)",
    };
    match rule.until.map(|until| moment(&until.to_string())) {
        Some(until) => Cell::text(format!("{word} until {until}"))
            .or(format!("{word} to {}", until.get(6..).unwrap_or(&until))),
        None => Cell::text(word),
    }
}

pub(super) fn requests(requests: &[Request]) -> Grid {
    let row = |one: &Request| Row { id: request_id(one), cells: of_request(one) };
    Grid {
        columns: REQUESTS,
        fills: 8,
        rows: requests.iter().map(row).collect(),
        none: "No request has ended yet, or none matches the filter.",
    }
}

/// Returns the request's ID. For a malformed message, which has no ID, returns its time and its
/// client.
pub(super) fn request_id(one: &Request) -> String {
    let malformed = || format!("{} {}", one.time, one.client);
    one.life.as_ref().map_or_else(malformed, |life| life.request.clone())
}

fn of_request(one: &Request) -> Vec<Cell> {
    let ended = Cell::number(one.time as f64, clock(one.time));
    let status = Cell::number(
        one.status.map(f64::from),
        one.status.map_or(NONE.into(), |status| status.to_string()),
    );
    let Some(life) = &one.life else {
        let fault = escaped(one.fault.as_deref().unwrap_or(NONE));
        let nothing = || Cell::text(NONE);
        let number = || Cell::number(None, NONE);
        let from = Cell::text(format!("{fault}, from {}", escaped(&one.client)));
        return vec![
            ended,
            Cell::text("malformed"),
            nothing(),
            nothing(),
            nothing(),
            number(),
            number(),
            status,
            from,
        ];
    };
    let word = |word: &Option<Cow<_>>| word.as_deref().map_or(NONE.into(), escaped);
    let would = life.mode == "observe"
        && life.decision.as_deref().is_some_and(|decision| decision != "run");
    let time = |us: u64| Cell::number(us as f64, duration(us as f64 / 1e3));
    vec![
        ended,
        Cell::text(escaped(&life.outcome)),
        Cell::text(escaped(&life.class)),
        Cell::text(if would {
            format!("would {}", word(&life.decision))
        } else {
            word(&life.decision)
        }),
        Cell::text(word(&life.reason)),
        time(life.queue_wait_us),
        time(life.service_us),
        status,
        Cell::text(format!("{} {}", escaped(&life.method), escaped(&life.target))),
    ]
}

pub(super) fn decisions(notes: &[Note]) -> Grid {
    let row = |note: &Note| Row { id: decision_id(note), cells: of_decision(note) };
    Grid {
        columns: DECISIONS,
        fills: 4,
        rows: notes.iter().map(row).collect(),
        none: "There is no decision yet, or none matches the filter.",
    }
}

pub(super) fn decision_id(note: &Note) -> String {
    format!("{} {:?} {:?}", note.at, note.what, note.subject)
}

fn of_decision(note: &Note) -> Vec<Cell> {
    let (at, until) = (note.at.to_string(), note.until.map(|until| until.to_string()));
    vec![
        Cell::number(note.at.as_millisecond() as f64, moment(&at)),
        Cell::text(note.what.name()),
        Cell::text(note.subject.shown()),
        Cell::text(note.author()),
        Cell::text(escaped(&note.why)),
        Cell::number(
            note.until.map(|until| until.as_millisecond() as f64),
            until.map_or(NONE.into(), |until| moment(&until)),
        ),
    ]
}

/// Returns the day and the time (UTC) of a timestamp in RFC 3339 form, as text.
fn moment(text: &str) -> String {
    text.get(5..16).unwrap_or(text).replace('T', " ")
}
