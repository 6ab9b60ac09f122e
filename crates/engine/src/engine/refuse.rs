//! Refusals: requests that are turned away or evicted, and when their clients may retry.

use bywash_units::{Time, TimeSpan};

use super::Engine;
use crate::action::Action;
use crate::queue::{State, Waiting};
use crate::reason::Reason;
use crate::request::RequestId;

impl Engine {
    pub(super) fn shed(&mut self, now: Time, id: RequestId, reason: Reason) -> Action {
        // A refusal because of the principal's own limit says nothing about the load.
        self.refuse(now, id, reason, reason != Reason::PrincipalCap)
    }

    /// Refuses a request. `is_load` says whether overload is the cause. If it is, the pauses before
    /// retries grow.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        id: RequestId,
        reason: Reason,
        is_load: bool,
    ) -> Action {
        self.lost(now, id);
        self.requests.note_refusal(now, id);
        self.requests.populations.refused(self.view(now).waiting(id).population);
        self.requests.set(id, State::Free);
        if is_load {
            let Waiting { stops_as, .. } = *self.view(now).waiting(id);
            self.terminate.lost(stops_as);
        } else {
            self.report_no_outcome(now, id);
        }
        Action::Shed { id, reason, retry_after: self.retry_after(now, is_load) }
    }

    /// Returns the time after which the client of a refused or stopped request may retry.
    pub(super) fn retry_after(&mut self, now: Time, is_load: bool) -> TimeSpan {
        // The drain time: how long the requests that wait now take at the present pace.
        let services = self.view(now).length() as u64 + 1;
        let drain = self.mean_service.mean() * services / u64::from(self.slots());
        self.retry_after.refused(now, drain, is_load)
    }
}
