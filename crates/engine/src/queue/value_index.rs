//! The scheduler that serves the most valuable request first, by expected revenue per second of
//! remaining work.
//!
//! Source: `policies.md` §1, «value index». The rank is the Gittins index of the class in the
//! learned session graph ([`crate::value`]). The first request of a session has an index of its
//! own, multiplied by the measured lift of its entry signals. The same factor applies to the
//! browsing pages that the session asks for later. The reason is that a visitor who came with a
//! full cart is likelier to buy on every page until they check out.
//!
//! A transaction without a proven path has the rank of the least valuable page that its session
//! could be at. Until enough is known to rank by, this scheduler works like `session-first`.
//!
//! Eviction and guards are in `ranked`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::SchedulerSettings;
use super::ranked::Ranked;
use super::ranking::{Ranking, Ranks};
use super::{Scheduler, Waiting};
use crate::request::{Class, ClassId, Signals, Standing, Tier};
use crate::value::{Position, Values};

/// Creates the scheduler for these classes, from the values of its parameters.
pub fn value_index(settings: &SchedulerSettings, classes: &[Class]) -> Box<dyn Scheduler> {
    let ranking =
        ByValue { tiers: classes.iter().map(|class| class.tier).collect(), version: None };
    Box::new(Ranked::new(ranking, settings, classes))
}

/// The ranking by value. There is a cell for each combination of standing, class and signals, and a
/// second one for its retries. Impossible cells stay empty. While nothing is known, the cells of
/// the first class are used for all classes.
#[derive(Debug)]
struct ByValue {
    tiers: Vec<Tier>,
    /// The version of the published values by which cells are ranked at present; `None` if they
    /// have not been ranked.
    version: Option<u32>,
}

/// The properties that all requests of a cell have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    standing: Standing,
    class: ClassId,
    signals: Signals,
    retry: bool,
}

impl ByValue {
    fn number(&self, cell: Cell) -> usize {
        let row = cell.standing.index() * self.tiers.len() + cell.class.index();
        2 * (row * Signals::MOST + cell.signals.index()) + usize::from(cell.retry)
    }

    fn numbered(&self, number: usize) -> Cell {
        let (retry, rest) = (number % 2 == 1, number / 2);
        let (signals, row) = (rest % Signals::MOST, rest / Signals::MOST);
        Cell {
            standing: Standing::ALL[row / self.tiers.len()],
            class: ClassId((row % self.tiers.len()) as u8),
            signals: Signals::from_index(signals),
            retry,
        }
    }

    /// Returns the worth by which a cell ranks. A greater worth is better.
    fn worth(&self, values: &Values, cell: Cell) -> f64 {
        let first = cell.standing == Standing::New;
        let index = |class: ClassId| values.index(Position { class, first }).unwrap_or(0.0);
        let looks = |class: &usize| self.tiers[*class] == Tier::Browsing;
        let lift = values.lift(cell.signals);
        match (cell.standing, self.tiers[cell.class.index()]) {
            (Standing::Transaction, _) => index(cell.class),
            (_, Tier::Browsing) => lift * index(cell.class),
            (_, Tier::Transaction) => {
                let pages =
                    (0..self.tiers.len()).filter(looks).map(|page| index(ClassId(page as u8)));
                lift * pages.reduce(f64::min).unwrap_or(0.0)
            }
        }
    }
}

impl Ranking for ByValue {
    fn cells(&self) -> usize {
        2 * Signals::MOST * Standing::COUNT * self.tiers.len()
    }

    fn cell(&self, waiting: &Waiting, _: usize, last: bool) -> usize {
        let is_known = self.version.is_some_and(|version| version > 0);
        self.number(Cell {
            standing: waiting.standing,
            class: if is_known { waiting.class } else { ClassId(0) },
            signals: if is_known { waiting.signals } else { Signals::NONE },
            retry: last,
        })
    }

    fn order(&mut self, values: &Values) -> Option<Ranks> {
        if self.version == Some(values.version()) {
            return None;
        }
        let is_known = |version: &u32| *version > 0;
        let regrouped = self.version.as_ref().is_some_and(is_known) != is_known(&values.version());
        self.version = Some(values.version());
        let mut order: Vec<(f64, bool, u32)> = (0..self.cells())
            .map(|number| {
                let cell = self.numbered(number);
                let worth = match values.version() {
                    // A better standing has a lower index.
                    0 => -(cell.standing.index() as f64),
                    _ => self.worth(values, cell),
                };
                (worth, cell.retry, number as u32)
            })
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let cells = order.into_iter().map(|(_, _, number)| number).collect();
        Some(Ranks { cells, regrouped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_number_of_its_own() {
        let ranking = ByValue {
            tiers: alloc::vec![Tier::Browsing, Tier::Transaction, Tier::Browsing],
            version: None,
        };
        for number in 0..ranking.cells() {
            assert_eq!(ranking.number(ranking.numbered(number)), number);
        }
    }
}
