//! The default scheduler: requests of sessions that have begun come before those of new ones.
//!
//! Source: `policies.md` §1, «session-first». The rank is what the session has *proven*
//! ([`Standing`]). Transactions of a session with a proven path come first, then sessions in
//! progress, then first requests of new sessions. No number is learned except the lifts of
//! populations.
//!
//! An order takes several requests of one session, and a server that starts more sessions than it
//! can finish sells nothing. So the most orders are completed if new sessions get only what the
//! begun ones leave. Retries by machines, which declare themselves, rank below first attempts of
//! the same standing. A visitor's own repetition does not (`docs/decisions/0014`).
//!
//! First requests rank by the levels of their populations, if the driver tells populations apart
//! (`population/`).
//!
//! First requests of a class with less utility than the class `other` come last. An operator may
//! choose that for searches and feeds. A class with more utility does not come earlier, because
//! anyone can ask for its pages. Therefore no new session gains rank by a choice of pages
//! (`docs/decisions/0043`).
//!
//! Eviction and guards are in `ranked`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::SchedulerSettings;
use super::ranked::Ranked;
use super::ranking::{Ranking, Ranks};
use super::{Scheduler, Waiting};
use crate::population::LEVELS;
use crate::request::{Class, Standing};
use crate::value::Values;

/// Creates the scheduler for these classes, from the values of its parameters.
pub fn session_first(settings: &SchedulerSettings, classes: &[Class]) -> Box<dyn Scheduler> {
    let other = classes.iter().find(|class| class.name == Class::OTHER);
    let is_minor = |class: &Class| other.is_some_and(|other| class.utility < other.utility);
    let ranking = ByStanding { minor: classes.iter().map(is_minor).collect() };
    Box::new(Ranked::new(ranking, settings, classes))
}

/// The number of standings of sessions that have begun.
const BEGUN: usize = Standing::New.index();

/// The ranking by standing. There is one cell for each standing of begun sessions. First requests
/// have one for each level of their populations, and so have first requests of minor classes. Each
/// of these has a second cell for retries.
#[derive(Debug)]
struct ByStanding {
    /// Whether each class, by its index, is minor: it has less utility than the class `other`.
    minor: Vec<bool>,
}

impl Ranking for ByStanding {
    fn cells(&self) -> usize {
        2 * (BEGUN + 2 * LEVELS)
    }

    fn cell(&self, waiting: &Waiting, level: usize, last: bool) -> usize {
        let (group, last) = (self.group(waiting), usize::from(last));
        match group.checked_sub(BEGUN) {
            None => 2 * group + last,
            Some(new) => 2 * BEGUN + (2 * new + last) * LEVELS + level,
        }
    }

    /// Returns the group of a request. Each standing is a group, and the first requests of minor
    /// classes are another. First requests of minor classes wait long whenever other pages are in
    /// demand. That does not mean that those other pages are overloaded.
    fn group(&self, waiting: &Waiting) -> usize {
        let is_minor = waiting.standing == Standing::New && self.minor[waiting.class.index()];
        waiting.standing.index() + usize::from(is_minor)
    }

    /// Returns `None`, because the order never changes: the number of a cell is its rank.
    fn order(&mut self, _: &Values) -> Option<Ranks> {
        None
    }
}
