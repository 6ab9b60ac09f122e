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
//! Eviction and guards are in `ranked`.

use alloc::boxed::Box;

use super::OrderSettings;
use super::ranked::{Ranked, Ranking, Ranks};
use super::{Order, Waiting};
use crate::request::{Class, Standing};
use crate::value::Values;

/// Creates the scheduler from the catalogue's parameters.
pub fn session_first(settings: &OrderSettings, classes: &[Class]) -> Box<dyn Order> {
    Box::new(Ranked::new(ByStanding, settings, classes))
}

/// The ranking by standing: one cell for each standing, and one for its retries.
#[derive(Debug)]
struct ByStanding;

impl Ranking for ByStanding {
    fn cells(&self) -> usize {
        2 * Standing::COUNT
    }

    fn cell(&self, waiting: &Waiting, last: bool) -> usize {
        2 * waiting.standing.index() + usize::from(last)
    }

    /// The ranks never change: cells rank by their numbers.
    fn order(&mut self, _: &Values) -> Option<Ranks> {
        None
    }
}
