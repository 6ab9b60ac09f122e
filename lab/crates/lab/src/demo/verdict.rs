//! Judges whether the promises of a demo were kept.

use std::fmt;

use bywash_command::Failure;
use bywash_scenario::{ResultRow, RunResult, Scenario, Second};
use bywash_terminal::{Align, Table};
use serde_json::{Value, json};

use super::phases::{Phase, Phases, overload};
use super::shop_side::Outcome;

/// The promises of a demo, each with its measurement.
pub(super) struct Verdict {
    pub(super) promises: Vec<Promise>,
    /// The reason why nothing can be concluded from the run; `None` if the run is valid.
    pub(super) invalid: Option<String>,
}

pub(super) struct Promise {
    pub(super) kept: bool,
    /// The promise in words.
    pub(super) words: String,
    /// The measured result in words.
    pub(super) found: String,
}

/// The time from the end of the overload's arrivals until its last clients have left, in seconds.
const SETTLING_S: usize = 5;

impl Verdict {
    /// Judges the promises of the demo with a flash crowd.
    pub(super) fn of(
        scenario: &Scenario,
        orders: &Phases,
        result: &RunResult,
        sides: [&Outcome; 2],
    ) -> Self {
        let (first, second) = (&result.cells[0], &result.cells[1]);
        let crowd = orders.overloaded();
        Self {
            promises: vec![
                more(crowd, "at least five times the plain shop's orders from the crowd"),
                possible(crowd, "at least 90 % of the orders that the shop had capacity for"),
                useful_work(first, second),
                no_refusals(scenario, second, "the crowd"),
                agreement(sides),
            ],
            invalid: result.invalid.clone(),
        }
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(&["promise", "found", ""].map(|name| (name, Align::Left)));
        for promise in &self.promises {
            table.push(vec![promise.words.clone(), promise.found.clone(), promise.word().into()]);
        }
        table
    }

    pub(super) fn to_json(&self) -> Value {
        self.promises.iter().map(Promise::to_json).collect()
    }

    pub(super) fn is_kept(&self) -> bool {
        self.invalid.is_none() && self.promises.iter().all(|promise| promise.kept)
    }

    pub(super) fn into_result(self) -> Result<(), Failure> {
        match &self.invalid {
            Some(why) => {
                Err(Failure::running(format!("nothing can be concluded from this run: {why}")))
            }
            None if self.is_kept() => Ok(()),
            None => Err(Failure::promise("a promise was not kept")),
        }
    }
}

/// Judges whether the site behind bywash has at least five times the successes of the other.
pub(super) fn more(phase: &Phase, words: &str) -> Promise {
    let (plain, bywash) = (phase.plain, phase.bywash);
    Promise {
        kept: bywash > 0 && bywash >= 5 * plain,
        words: words.into(),
        found: format!("{bywash} and {plain}"),
    }
}

/// Judges whether the site behind bywash has at least 90 % of the possible successes.
pub(super) fn possible(phase: &Phase, words: &str) -> Promise {
    let share = phase.bywash as f64 / phase.possible;
    Promise {
        kept: share >= 0.9,
        words: words.into(),
        found: format!("{} of {:.0}, {:.0} %", phase.bywash, phase.possible, 100.0 * share),
    }
}

/// Judges the useful share of the time for which the shop's workers were busy. This share is not
/// relative to the possible work, because for a minute with a crowd in the middle the possible work
/// depends on assumptions.
fn useful_work(plain: &ResultRow, bywash: &ResultRow) -> Promise {
    let (useful, without) = (useful_share(bywash), useful_share(plain));
    Promise {
        kept: useful >= 0.9,
        words: "at least 90 % of the shop's work is useful".into(),
        found: format!("{:.0} % (plain proxy: {:.0} %)", 100.0 * useful, 100.0 * without),
    }
}

fn useful_share(cell: &ResultRow) -> f64 {
    let wasted = cell.wasted_work.unwrap_or(f64::INFINITY);
    cell.useful_work / (cell.useful_work + wasted)
}

/// Judges whether bywash refused no request in the calm. `scenario` has the overload, which `name`
/// names.
pub(super) fn no_refusals(scenario: &Scenario, bywash: &ResultRow, name: &str) -> Promise {
    let (from, to) = overload(scenario);
    let dropped = |seconds: &[Second]| seconds.iter().map(|second| second.dropped).sum::<u64>();
    let timeline = &bywash.timeline;
    let second = |seconds: f64| (seconds as usize).min(timeline.len());
    let before = dropped(&timeline[..second(from.as_secs_f64())]);
    let calm = second(to.as_secs_f64()) + SETTLING_S;
    let after = dropped(&timeline[calm.min(timeline.len())..]);
    Promise {
        kept: before == 0 && after == 0,
        words: format!(
            "no request is refused before {name}, or from {SETTLING_S} s after {name} on"
        ),
        found: format!("{before} and {after}"),
    }
}

/// Judges whether the database has every order that a visitor saw confirmed, on both sides. The
/// reverse is allowed: the database may have an order whose client had left just before the
/// confirmation.
fn agreement(sides: [&Outcome; 2]) -> Promise {
    let seen: usize = sides.iter().map(|side| side.run.confirmed.len()).sum();
    let missing: usize = sides.iter().map(|side| side.count_missing()).sum();
    Promise {
        kept: missing == 0,
        words: "every order that a client saw confirmed is in the shop's database".into(),
        found: format!("{seen} confirmed, {missing} missing"),
    }
}

impl Promise {
    const fn word(&self) -> &'static str {
        if self.kept { "kept" } else { "BROKEN" }
    }

    fn to_json(&self) -> Value {
        json!({ "kept": self.kept, "promise": self.words, "found": self.found })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for promise in &self.promises {
            writeln!(f, "{:<6}  {}:\n        {}", promise.word(), promise.words, promise.found)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bywash_scenario::{Closes, Tally};
    use bywash_units::TimeSpan;

    use super::super::phases::tests::phases;
    use super::*;

    fn scenario() -> Scenario {
        Scenario::parse(super::super::flash_crowd::FLASH_CROWD, Path::new(".")).unwrap()
    }

    fn cell(useful: f64, wasted: Option<f64>, dropped_at: Option<usize>) -> ResultRow {
        let scenario = scenario();
        let tally = Tally::new(&scenario, 2.5, TimeSpan::from_secs(60));
        let mut cell = Tally::result_row(&[tally], &scenario, "x", 2.5, Closes::Visible);
        (cell.useful_work, cell.wasted_work) = (useful, wasted);
        if let Some(second) = dropped_at {
            cell.timeline[second].dropped = 1;
        }
        cell
    }

    #[test]
    fn five_times_the_orders_is_kept_and_less_or_none_is_broken() {
        for (plain, bywash, kept) in [(10, 50, true), (0, 1, true), (10, 49, false), (0, 0, false)]
        {
            assert_eq!(
                more(phases(100.0, plain, bywash).overloaded(), "").kept,
                kept,
                "{plain} and {bywash}"
            );
        }
    }

    #[test]
    fn nine_tenths_of_the_possible_orders_is_kept_and_less_is_broken() {
        assert!(possible(phases(100.0, 0, 90).overloaded(), "").kept);
        assert!(!possible(phases(100.0, 0, 89).overloaded(), "").kept);
    }

    #[test]
    fn useful_work_is_a_share_of_all_work_and_unknown_work_keeps_no_promise() {
        let plain = cell(0.5, Some(0.5), None);
        assert!(useful_work(&plain, &cell(0.9, Some(0.1), None)).kept);
        // The useful work is above the sustained capacity, and a fifth of all work is wasted, so
        // the promise is not kept.
        assert!(!useful_work(&plain, &cell(1.2, Some(0.3), None)).kept);
        assert!(!useful_work(&plain, &cell(1.0, None, None)).kept);
    }

    #[test]
    fn a_refusal_in_the_calm_breaks_the_promise_and_one_in_the_crowd_does_not() {
        for (second, kept) in [(0, false), (14, false), (15, true), (49, true), (50, false)] {
            let cell = cell(1.0, Some(0.0), Some(second));
            assert_eq!(no_refusals(&scenario(), &cell, "it").kept, kept, "second {second}");
        }
    }
}
