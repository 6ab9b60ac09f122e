//! `bywash sessions`: the transitions and the worth of sessions, as a running gateway has learned
//! them.

use bywash_api::{ClassLearned, Sessions, SignalsSeen};
use bywash_command::Failure;
use bywash_terminal::{Align, Table};

use crate::args::Read;
use crate::read::read;

pub(crate) fn sessions(args: &Read) -> Result<(), Failure> {
    read(args, "/v1/sessions", |learned: &Sessions| {
        let text = format!("{}\n{}", headline(learned), classes(&learned.classes));
        if learned.signals.is_empty() {
            return text;
        }
        format!("{text}\n{}", signals_table(&learned.signals))
    })
}

fn headline(learned: &Sessions) -> String {
    let state = if learned.ranked_by_worth {
        "enough to rank by worth"
    } else {
        "not enough to rank by worth yet"
    };
    let evicted = learned.evicted;
    format!(
        "{} sessions remembered, {} proven · evicted: {} fresh, {} proven, {} of them over the quota of \
         an address\n{:.0} orders seen (older ones count less): {state}\n\
         visits: first of a session + later · worth: revenue expected of a session from the class \
         on ·\nchange: in the last hour or less · index: worth per second of a slot, of sessions \
         that reach\nthe class (that begin with it) · next: the likeliest next classes\n",
        learned.remembered,
        learned.proven,
        evicted.fresh,
        evicted.proven,
        evicted.over_quota,
        learned.orders
    )
}

fn classes(classes: &[ClassLearned]) -> Table {
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("visits", Align::Right),
        ("worth", Align::Right),
        ("change", Align::Right),
        ("index /s", Align::Right),
        ("service ms", Align::Right),
        ("ends in time", Align::Right),
        ("next", Align::Left),
    ]);
    for class in classes {
        let fixed = if class.fixed { " fixed" } else { "" };
        table.push(vec![
            class.name.clone(),
            format!("{:.0} + {:.0}", class.first_visits, class.later_visits),
            format!("{}{fixed}", short(class.worth)),
            change(class),
            index(class),
            class.service_ms.map_or("—".to_owned(), |ms| format!("{ms:.1}")),
            format!("{:.0} %", 100.0 * class.completes),
            next(class),
        ]);
    }
    table
}

/// Returns a table of how often sessions ended in an order. It has one row for each combination of
/// signals with which sessions began.
fn signals_table(seen: &[SignalsSeen]) -> Table {
    let mut table = Table::new(&[
        ("sessions that began with", Align::Left),
        ("sessions", Align::Right),
        ("ordered", Align::Right),
        ("times as likely", Align::Right),
    ]);
    for signals in seen {
        let shown = signals.shown.join(", ");
        table.push(vec![
            if shown.is_empty() { "none of the signals".to_owned() } else { shown },
            format!("{:.0}", signals.sessions),
            format!("{:.0}", signals.ordered),
            short(signals.times_as_likely),
        ]);
    }
    table
}

fn change(class: &ClassLearned) -> String {
    match class.worth_before {
        Some(before) if before > 0.0 => format!("{:+.0} %", 100.0 * (class.worth / before - 1.0)),
        Some(_) | None => "new".to_owned(),
    }
}

fn index(class: &ClassLearned) -> String {
    let of = |index: Option<f64>| index.map_or("—".to_owned(), short);
    format!("{} ({})", of(class.index_per_s), of(class.first_index_per_s))
}

/// Returns the three most probable next classes after this class, as text.
fn next(class: &ClassLearned) -> String {
    let mut next: Vec<(&String, f64)> = class.next.iter().map(|(name, p)| (name, *p)).collect();
    next.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = next.iter().take(3).map(|(name, p)| format!("{name} {:.1} %", 100.0 * p));
    words.collect::<Vec<_>>().join(", ")
}

/// Formats a number with about three significant digits, because the worth of a class can have any
/// magnitude.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 1.0 => format!("{number:.2}"),
        size if size >= 0.001 => format!("{number:.4}"),
        _ => format!("{number:.1e}"),
    }
}
