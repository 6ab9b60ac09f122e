//! Were the promises kept?

use std::fmt;

use bywash_report::{Align, Table};
use bywash_scenario::{Cell, Scenario, Second};
use serde_json::{Value, json};

use super::books::{Books, crowd};
use super::side::{Outcome, joined};
use crate::failure::Failure;

/// The promises of the demo, each with what was found.
pub(super) struct Verdict {
    pub(super) promises: Vec<Promise>,
    /// Why nothing can be concluded, if so.
    pub(super) invalid: Option<String>,
}

pub(super) struct Promise {
    pub(super) kept: bool,
    /// What was promised.
    pub(super) words: String,
    /// What was found.
    pub(super) found: String,
}

/// The crowd's last visitors are still there when it has stopped coming.
const SETTLING_S: usize = 5;

impl Verdict {
    pub(super) fn of(
        scenario: &Scenario,
        books: &Books,
        plain: &Outcome,
        bywash: &Outcome,
    ) -> Self {
        let result = joined(scenario, 0, plain, bywash);
        let (first, second) = (&result.cells[0], &result.cells[1]);
        Self {
            promises: vec![
                more_orders(books),
                possible_orders(books),
                useful_work(first, second),
                no_refusals(scenario, second),
                agreement(books, second),
            ],
            invalid: result.invalid,
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

    pub(super) fn kept(&self) -> bool {
        self.invalid.is_none() && self.promises.iter().all(|promise| promise.kept)
    }

    pub(super) fn into_result(self) -> Result<(), Failure> {
        match &self.invalid {
            Some(why) => Err(Failure::running(format!("nothing can be concluded: {why}"))),
            None if self.kept() => Ok(()),
            None => Err(Failure::promise("a promise was not kept")),
        }
    }
}

fn more_orders(books: &Books) -> Promise {
    let (plain, bywash) = (books.crowd().plain, books.crowd().bywash);
    Promise {
        kept: bywash > 0 && bywash >= 5 * plain,
        words: "at least five times the plain shop's orders from the crowd".into(),
        found: format!("{bywash} and {plain}"),
    }
}

fn possible_orders(books: &Books) -> Promise {
    let crowd = books.crowd();
    let share = crowd.bywash as f64 / crowd.possible;
    Promise {
        kept: share >= 0.9,
        words: "at least 90 % of the orders that capacity allows".into(),
        found: format!("{} of {:.0}, {:.0} %", crowd.bywash, crowd.possible, 100.0 * share),
    }
}

fn useful_work(plain: &Cell, bywash: &Cell) -> Promise {
    let (useful, without) = (100.0 * bywash.useful_work, 100.0 * plain.useful_work);
    Promise {
        kept: bywash.useful_work >= 0.9,
        words: "at least 90 % useful work".into(),
        found: format!("{useful:.0} % (plain proxy: {without:.0} %)"),
    }
}

fn no_refusals(scenario: &Scenario, bywash: &Cell) -> Promise {
    let (from, to) = crowd(scenario);
    let dropped = |seconds: &[Second]| seconds.iter().map(|second| second.dropped).sum::<u64>();
    let timeline = &bywash.timeline;
    let second = |seconds: f64| (seconds as usize).min(timeline.len());
    let before = dropped(&timeline[..second(from.as_secs_f64())]);
    let calm = second(to.as_secs_f64()) + SETTLING_S;
    let after = dropped(&timeline[calm.min(timeline.len())..]);
    Promise {
        kept: before == 0 && after == 0,
        words: format!("nothing refused before the crowd or from {SETTLING_S} s after it"),
        found: format!("{before} and {after}"),
    }
}

/// The clients' count of orders and the databases' must agree, or one of them is wrong. A shop may
/// have committed an order whose client had just left, never the other way round.
fn agreement(books: &Books, bywash: &Cell) -> Promise {
    let rows: u64 = books.phases.iter().map(|phase| phase.bywash).sum();
    Promise {
        kept: rows >= bywash.orders,
        words: "every order that a client saw confirmed is in the database".into(),
        found: format!("{} seen, {rows} there", bywash.orders),
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
