//! The default scheduler: requests of sessions that have begun come before those of new ones.
//!
//! Source: `policies.md` §1, «session-first». The rank is what the session has *proven*
//! ([`Standing`]): transactions of a session with a proven path, then sessions in progress, then
//! first requests of new sessions. No learned number is involved. An order takes several requests
//! of one session, and a server that starts more sessions than it can finish sells nothing. So the
//! most orders are completed if new sessions get only what the begun ones leave. Retries by
//! machines, which declare themselves, rank below first attempts of the same standing; a visitor's
//! own repetition does not (`docs/decisions/0014`).
//!
//! First requests of a class that is worth less than the class `other` come last: searches and
//! feeds, if the operator says so, behind pages. A class that is worth more does not come earlier,
//! because anyone can ask for its pages. Therefore no new session gains rank by a choice of pages
//! (`docs/decisions/0043`).
//!
//! Eviction and guards are in `ranked`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::SchedulerSettings;
use super::ranked::Ranked;
use super::ranking::{Ranking, Ranks};
use super::{Scheduler, Waiting};
use crate::request::{Class, Standing};
use crate::value::Values;

/// Creates the scheduler from the catalogue's parameters.
pub fn session_first(settings: &SchedulerSettings, classes: &[Class]) -> Box<dyn Scheduler> {
    let other = classes.iter().find(|class| class.name == Class::OTHER);
    let is_minor = |class: &Class| other.is_some_and(|other| class.utility < other.utility);
    let ranking = ByStanding { minor: classes.iter().map(is_minor).collect() };
    Box::new(Ranked::new(ranking, settings, classes))
}

/// The ranking by standing: one cell for each standing and one for first requests of minor classes,
/// each with one for its retries.
#[derive(Debug)]
struct ByStanding {
    /// Whether each class is worth less than the class `other`.
    minor: Vec<bool>,
}

impl Ranking for ByStanding {
    fn cells(&self) -> usize {
        2 * (Standing::COUNT + 1)
    }

    fn cell(&self, waiting: &Waiting, last: bool) -> usize {
        2 * self.group(waiting) + usize::from(last)
    }

    /// Each standing is a group, and the first requests of minor classes are one. They wait for
    /// long wherever pages come first, and that shows no overload among pages.
    fn group(&self, waiting: &Waiting) -> usize {
        let is_minor = waiting.standing == Standing::New && self.minor[waiting.class.index()];
        waiting.standing.index() + usize::from(is_minor)
    }

    /// The ranks never change: cells rank by their numbers.
    fn order(&mut self, _: &Values) -> Option<Ranks> {
        None
    }
}
