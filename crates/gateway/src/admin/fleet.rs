//! Answers `/v1/fleet`: the gateways that share the slots of one application.

use super::answer::{Answered, Refused};
use crate::shared::Shared;

/// Returns the state of the fleet. Returns an error if the gateway belongs to none.
pub(super) fn fleet(shared: &Shared) -> Answered {
    #[cfg(feature = "fleet")]
    if shared.settings().config.fleet.is_some() {
        return Ok(super::answer::document(&shared.fleet.status()));
    }
    let _ = shared;
    Err(Refused::not_found("the gateway belongs to no fleet: its file has no `fleet.name`"))
}
