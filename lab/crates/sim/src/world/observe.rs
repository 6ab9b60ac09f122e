//! Treats requests of a policy in mode `observe` as the gateway's driver does (decision 0002).
//!
//! An observed request goes to the servers at once. The engine decides about it as about any other
//! request, and the decision is noted instead of carried out. When the request ends, the decision of
//! that time is counted. The end is a measurement for the engine only if the request got a slot on
//! arrival. Otherwise the engine forgets the request without learning anything from it.
//!
//! The gateway also bounds the number of observed requests that run at once
//! (`client_limits.observed`). The simulator does not.

use bywash_engine::{Action, Event, Request, RequestId};
use bywash_scenario::Decision;

use super::World;
use super::clients::LiveRequest;

/// The engine's decision about an observed request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    /// The decision so far.
    decision: Decision,
    /// Whether the request got a slot on arrival, so that its end is a measurement for the engine.
    measured: bool,
}

impl World<'_> {
    /// Sends an arriving request to the servers at once, and asks the engine about it.
    pub(super) fn observe(&mut self, id: u32, request: Request) {
        let waits = Observed { decision: Decision::Wait, measured: false };
        self.requests.get_mut(id).observed = Some(waits);
        // The gateway is not willing to stop an observed request, and says so to the engine.
        let request = Request { cancellable: false, ..request };
        self.notify_engine(Event::Arrived { id: RequestId(id), request });
        let live = self.requests.get_mut(id);
        if let Some(observed) = &mut live.observed {
            observed.measured = observed.decision == Decision::Run;
        }
        self.servers.admit(self.now, id, live.of.class, live.demand);
        self.out.started += 1;
    }

    /// Notes the decision in an action on an observed request. Returns whether the action is one on
    /// an observed request, which is not carried out.
    pub(super) fn note_decision(&mut self, action: Action) -> bool {
        let (id, decision) = match action {
            Action::Dispatch { id, .. } => (id, Decision::Run),
            Action::Shed { id, .. } => (id, Decision::Shed),
            Action::Terminate { id, .. } => (id, Decision::Stop),
            // The request has ended, so its number may be free.
            Action::Cancel { .. } => return false,
        };
        let Some(observed) = &mut self.requests.get_mut(id.0).observed else { return false };
        observed.decision = decision;
        true
    }

    /// Tells the engine that a request has ended with the event `end`. If the request was only
    /// observed, counts the decision about it.
    pub(super) fn release(&mut self, id: u32, live: &LiveRequest, end: Event) {
        let Some(Observed { decision, measured }) = live.observed else {
            self.notify_engine(end);
            return;
        };
        // Requests of permanent clients count only if they ended before the end of the run.
        if live.is_counted() && (self.clients.is_empty() || self.now <= self.end) {
            self.out.tally.observed(decision);
        }
        // The engine has already forgotten a request that it has refused or stopped.
        if matches!(decision, Decision::Run | Decision::Wait) {
            let withdrawn = Event::Withdrawn { id: RequestId(id) };
            self.notify_engine(if measured { end } else { withdrawn });
        }
    }
}
