//! The most valuable first: expected revenue per second of work still to be spent.
//!
//! Source: POLICIES §1, «value index». Rank is the Gittins index of the class in the learned session
//! graph ([`crate::value`]); a session's first request has an index of its own, multiplied by what
//! its entry signals were measured to mean. The same for the pages that the session looks at later:
//! whoever came with a full cart is likelier to buy on every page until she is at the till.
//!
//! A transaction without a proven path has the rank of the least valuable page that its session
//! could be at. Until enough is known to rank by, this is session-first.
//!
//! How requests are pushed out and what guards there are: `ranked`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::ranked::{Ranked, Ranking, Ranks};
use super::{Order, Waiting};
use crate::catalog::Settings;
use crate::request::{Class, ClassId, Signals, Standing, Tier};
use crate::value::{Place, Values};

/// Makes the order, as the catalogue's parameters say.
pub fn value_index(settings: &Settings, classes: &[Class]) -> Box<dyn Order> {
    let ranking =
        ByValue { tiers: classes.iter().map(|class| class.tier).collect(), version: None };
    Box::new(Ranked::new(ranking, settings, classes))
}

/// A cell for each standing, class, combination of signals, and for their retries. Cells that
/// cannot be stay empty. While nothing is known, the first class's cells stand for all classes.
#[derive(Debug)]
struct ByValue {
    tiers: Vec<Tier>,
    /// What the present order was made from; `None`: nothing was ranked yet.
    version: Option<u32>,
}

/// What all requests of a cell have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    standing: Standing,
    class: ClassId,
    signals: Signals,
    retry: bool,
}

impl ByValue {
    fn number(&self, cell: Cell) -> usize {
        let place = cell.standing.index() * self.tiers.len() + cell.class.index();
        2 * (place * Signals::MOST + cell.signals.index()) + usize::from(cell.retry)
    }

    fn numbered(&self, number: usize) -> Cell {
        let (retry, rest) = (number % 2 == 1, number / 2);
        let (signals, place) = (rest % Signals::MOST, rest / Signals::MOST);
        Cell {
            standing: Standing::ALL[place / self.tiers.len()],
            class: ClassId((place % self.tiers.len()) as u8),
            signals: Signals::from_index(signals),
            retry,
        }
    }

    /// What a cell ranks by: the greater the better.
    fn worth(&self, values: &Values, cell: Cell) -> f64 {
        let first = cell.standing == Standing::New;
        let index = |class: ClassId| values.index(Place { class, first }).unwrap_or(0.0);
        let looks = |class: &usize| self.tiers[*class] == Tier::Browse;
        let lift = values.lift(cell.signals);
        match (cell.standing, self.tiers[cell.class.index()]) {
            (Standing::Transaction, _) => index(cell.class),
            (_, Tier::Browse) => lift * index(cell.class),
            (_, Tier::Transact) => {
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

    fn cell(&self, waiting: &Waiting, last: bool) -> usize {
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
                    // Better standings come first.
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
            tiers: alloc::vec![Tier::Browse, Tier::Transact, Tier::Browse],
            version: None,
        };
        for number in 0..ranking.cells() {
            assert_eq!(ranking.number(ranking.numbered(number)), number);
        }
    }
}
