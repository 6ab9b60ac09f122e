//! The live view of the demo. On a terminal it redraws a small table in place. Elsewhere it prints
//! one line for each side every five seconds. Both forms fit 80 columns.

use std::fmt::Write as _;
use std::sync::Mutex;

use bywash_command::streams::{draw, has_colour, is_terminal, say};
use bywash_load::Progress;
use bywash_scenario::Scenario;
use bywash_units::Time;

use super::gauge::Gauge;
use super::phases::overload;
use super::side::{ProxyKind, rho};
use super::words::Words;

pub(super) struct Screen {
    terminal: bool,
    colour: bool,
    words: Words,
    plan: Plan,
    view: Mutex<View>,
}

/// The times of the run's phases, in seconds since the start, and the offered load during the
/// overload.
#[derive(Clone, Copy)]
struct Plan {
    from: f64,
    to: f64,
    end: f64,
    rho: f64,
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Calm,
    Overload,
    CalmAgain,
    /// The time after arrivals have ended, while some clients still have unfinished sessions.
    Last,
}

struct View {
    plain: Gauge,
    bywash: Gauge,
    /// Whether the table has already been drawn on the terminal.
    drawn: bool,
    /// The time at which the next plain lines are due, in seconds since the start.
    due: u64,
}

/// The interval between plain lines, in seconds.
const EVERY: u64 = 5;

/// The second line of column headings of both forms of the view. The headings stand between the
/// name of the side and the strip.
const UNITS: &str = "a second  a second  a second   so far";

const OVERLOAD: &str = "\x1b[1;33m";
const GOOD: &str = "\x1b[1;32m";
const USUAL: &str = "\x1b[0m";

impl Screen {
    /// Creates the view of a run in which `scenario` has the overload.
    pub(super) fn new(scenario: &Scenario, words: Words) -> Self {
        let (from, to) = overload(scenario);
        let (rho, duration) = (rho(scenario), scenario.duration(rho(scenario)));
        let seconds = |time: Time| time.as_secs_f64();
        let end = duration.as_secs_f64();
        Self {
            terminal: is_terminal(),
            colour: has_colour(),
            words,
            plan: Plan { from: seconds(from), to: seconds(to), end, rho },
            view: Mutex::new(View {
                plain: Gauge::new(duration),
                bywash: Gauge::new(duration),
                drawn: false,
                due: EVERY,
            }),
        }
    }

    /// Shows the present progress of one side.
    pub(super) fn show(&self, kind: ProxyKind, progress: &Progress) {
        // A poisoned lock means that the thread of the other side has panicked. That panic is
        // reported elsewhere.
        let Ok(mut view) = self.view.lock() else { return };
        match kind {
            ProxyKind::Plain => view.plain.read(progress),
            ProxyKind::Bywash => view.bywash.read(progress),
        }
        let seconds = progress.elapsed.as_secs_f64();
        if self.terminal {
            let table = self.table(&view, seconds);
            draw(&over(&table, view.drawn));
            view.drawn = true;
        } else if seconds as u64 >= view.due {
            if view.due == EVERY {
                say(self.plain_head());
            }
            view.due = seconds as u64 / EVERY * EVERY + EVERY;
            say(self.plain_lines(&view, seconds));
        }
    }

    fn table(&self, view: &View, seconds: f64) -> Vec<String> {
        let most = view.plain.most().max(view.bywash.most());
        let row = |kind: ProxyKind, gauge: &Gauge| {
            format!("  {:<11}  {}   {}", kind.label(), numbers(gauge), gauge.strip(most))
        };
        let phase = format!("  {seconds:2.0} s  {}", self.description(seconds));
        let phase = match self.plan.phase(seconds) {
            Phase::Overload => self.painted(OVERLOAD, phase),
            Phase::Calm | Phase::CalmAgain | Phase::Last => phase,
        };
        vec![
            phase,
            String::new(),
            format!(
                "  {:<11}  {}   {} over the minute",
                self.behind(),
                self.head(),
                self.words.unit
            ),
            format!("  {:<11}  {UNITS}", ""),
            row(ProxyKind::Plain, &view.plain),
            self.painted(GOOD, row(ProxyKind::Bywash, &view.bywash)),
        ]
    }

    fn painted(&self, colour: &str, line: String) -> String {
        if self.colour { format!("{colour}{line}{USUAL}") } else { line }
    }

    fn plain_lines(&self, view: &View, seconds: f64) -> String {
        let start = format!("{seconds:3.0} s  {:<13}", self.name(self.plan.phase(seconds)));
        let row = |kind: ProxyKind, gauge: &Gauge| {
            format!("{start}  {:<11}  {}", kind.label(), numbers(gauge))
        };
        format!("{}\n{}", row(ProxyKind::Plain, &view.plain), row(ProxyKind::Bywash, &view.bywash))
    }

    fn plain_head(&self) -> String {
        let head = |words: [&str; 3], rest| {
            format!("{:>5}  {:<13}  {:<11}  {rest}", words[0], words[1], words[2])
        };
        let second = head(["time", "phase", &self.behind()], UNITS);
        format!("{}\n{second}", head(["", "", ""], &self.head()))
    }

    /// Returns the first line of column headings, above [`UNITS`].
    fn head(&self) -> String {
        format!("answered   gave up   refused   {:>6}", self.words.unit)
    }

    fn behind(&self) -> String {
        format!("{} behind", self.words.site)
    }

    fn name(&self, phase: Phase) -> String {
        match phase {
            Phase::Calm => "calm".into(),
            Phase::Overload => self.words.phase.to_uppercase(),
            Phase::CalmAgain => "calm again".into(),
            Phase::Last => format!("last {}", self.words.clients),
        }
    }

    fn description(&self, seconds: f64) -> String {
        let Plan { from, to, rho, .. } = self.plan;
        let Words { site, clients, arrival, .. } = self.words;
        let phase = self.plan.phase(seconds);
        match phase {
            Phase::Calm => format!("calm: {arrival} at {from:.0} s"),
            Phase::Overload => {
                let name = self.name(phase);
                format!("{name} until {to:.0} s: {rho} times what a {site} can serve")
            }
            Phase::CalmAgain => format!("calm again: as many {clients} arrive as at the beginning"),
            Phase::Last => format!("no new {clients} arrive; the last ones are finishing"),
        }
    }
}

impl Plan {
    fn phase(self, seconds: f64) -> Phase {
        match seconds {
            s if s < self.from => Phase::Calm,
            s if s < self.to => Phase::Overload,
            s if s < self.end => Phase::CalmAgain,
            _ => Phase::Last,
        }
    }
}

fn numbers(gauge: &Gauge) -> String {
    let rates = gauge.rates();
    format!(
        "{:8.0}  {:8.0}  {:8.0}  {:7}",
        rates.answered,
        rates.gave_up,
        rates.refused,
        gauge.orders_so_far()
    )
}

/// Returns text that draws `lines` on a terminal, over the previous lines if `drawn` is true. Line
/// wrapping is off, so that a narrow terminal cuts lines instead of scrolling.
fn over(lines: &[String], drawn: bool) -> String {
    let mut out = String::from("\x1b[?7l");
    if drawn {
        let _ = write!(out, "\x1b[{}A", lines.len());
    }
    for line in lines {
        let _ = writeln!(out, "\x1b[2K{line}");
    }
    out.push_str("\x1b[?7h");
    out
}

#[cfg(test)]
mod tests {
    use super::super::words::{SHOP, WIKI};
    use super::*;

    fn screen(words: Words) -> Screen {
        let plan = Plan { from: 15.0, to: 45.0, end: 60.0, rho: 2.5 };
        let gauge = || Gauge::new(bywash_units::TimeSpan::from_secs(60));
        let view = View { plain: gauge(), bywash: gauge(), drawn: false, due: EVERY };
        Screen { terminal: true, colour: false, words, plan, view: Mutex::new(view) }
    }

    fn busy(seconds: u64) -> Progress {
        Progress {
            elapsed: bywash_units::TimeSpan::from_secs(seconds),
            completed: seconds * 12_345,
            timed_out: seconds * 12_345,
            dropped: seconds * 12_345,
            orders: seconds * 100,
            ..Progress::default()
        }
    }

    fn at_any_time(words: Words) -> impl Iterator<Item = (Words, u64)> {
        [0, 14, 15, 30, 45, 60, 75].into_iter().map(move |second| (words, second))
    }

    #[test]
    fn every_line_fits_eighty_columns_at_any_time() {
        for (words, second) in [SHOP, WIKI].into_iter().flat_map(at_any_time) {
            let screen = screen(words);
            let mut view = screen.view.lock().unwrap();
            view.plain.read(&busy(second));
            view.bywash.read(&busy(second));
            let seconds = second as f64;
            let mut lines = screen.table(&view, seconds);
            lines.extend(screen.plain_lines(&view, seconds).lines().map(String::from));
            lines.extend(screen.plain_head().lines().map(String::from));
            for line in lines {
                assert!(line.chars().count() <= 80, "{line:?}");
            }
        }
    }

    #[test]
    fn the_table_stays_where_it_is() {
        let lines = vec!["a".to_owned(), "b".to_owned()];
        assert!(!over(&lines, false).contains('A'));
        assert!(over(&lines, true).contains("\x1b[2A"));
        assert_eq!(over(&lines, true).matches('\n').count(), 2);
    }

    #[test]
    fn the_phases_follow_each_other() {
        let plan = screen(SHOP).plan;
        let phases = [0.0, 15.0, 44.9, 45.0, 60.0].map(|seconds| plan.phase(seconds));
        assert_eq!(
            phases,
            [Phase::Calm, Phase::Overload, Phase::Overload, Phase::CalmAgain, Phase::Last]
        );
    }
}
