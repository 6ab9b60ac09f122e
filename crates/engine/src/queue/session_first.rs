//! Finish what was begun: the default order.
//!
//! Source: POLICIES §1, «session-first». Rank is what the session has *proven* ([`Standing`]):
//! transactions of a session that walked there, then sessions in progress, then first requests of
//! new sessions. No learned number is involved. An order takes several requests of one session; a
//! server that starts more sessions than it can finish sells nothing, so the way to the most
//! orders is to let new sessions have what the begun ones leave over. Retries by
//! machines, which say so, rank below first attempts of the same standing; a visitor who asks again
//! does not (`docs/decisions/0014`).
//!
//! How requests are pushed out and what guards there are: `ranked`.

use alloc::boxed::Box;

use super::ranked::{Ranked, Ranking, Ranks};
use super::{Order, Waiting};
use crate::catalog::Settings;
use crate::request::{Class, Standing};
use crate::value::Values;

/// Makes the order, as the catalogue's parameters say.
pub fn session_first(settings: &Settings, classes: &[Class]) -> Box<dyn Order> {
    Box::new(Ranked::new(ByStanding, settings, classes))
}

/// A cell for each standing, and for its retries.
#[derive(Debug)]
struct ByStanding;

impl Ranking for ByStanding {
    fn cells(&self) -> usize {
        2 * Standing::COUNT
    }

    fn cell(&self, waiting: &Waiting, last: bool) -> usize {
        2 * waiting.standing.index() + usize::from(last)
    }

    /// As they are numbered, for ever.
    fn order(&mut self, _: &Values) -> Option<Ranks> {
        None
    }
}
