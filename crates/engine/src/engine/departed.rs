//! Handles requests whose clients have left.

use alloc::vec::Vec;

use bywash_units::Time;

use super::{Engine, view};
use crate::action::Action;
use crate::limit::Completion;
use crate::queue::State;
use crate::reason::Reason;
use crate::request::RequestId;

impl Engine {
    /// Frees the place in the queue or the slot of a request whose client has left.
    pub(super) fn client_gone(&mut self, now: Time, id: RequestId, actions: &mut Vec<Action>) {
        match self.requests.state(id) {
            State::Waiting => {
                self.lost(now, id);
                self.report_no_outcome(now, id);
                if !self.leave_lane(id) {
                    let view = view(now, self.mean_service, self.learning.values(), &self.requests);
                    self.scheduler.departed(&view, id);
                    self.requests.leave_queue(id);
                }
                self.requests.set(id, State::Free);
            }
            State::Running(since) => {
                self.lost(now, id);
                self.report_no_outcome(now, id);
                self.learn_abandoned_run(now, id, since);
                self.take_back(now, id, since, self.departure(now, id));
                actions.push(Action::Cancel { id, reason: Reason::ClientLeft });
            }
            State::Free => {}
        }
    }

    /// Returns how the concurrency limit counts a request whose client has left. The result is
    /// [`Completion::Void`] if the client was slow to send or to read, because that prolongs the
    /// run whatever the application does.
    fn departure(&self, now: Time, id: RequestId) -> Completion {
        let view = self.view(now);
        let waiting = view.waiting(id);
        let is_clients = waiting.unfinished || self.requests.is_answered(id) || self.slow.has(id);
        if is_clients { Completion::Void } else { Completion::Left }
    }

    /// Notes that the client of a running request has left. The application goes on working, so the
    /// request keeps its slot.
    pub(super) fn departed(&mut self, now: Time, id: RequestId) {
        if matches!(self.requests.state(id), State::Running(_)) {
            self.lost(now, id);
            self.report_no_outcome(now, id);
        }
    }
}
