//! Requests that a rule is for: they wait in its lane instead of the queue.

use alloc::vec::Vec;

use bywash_units::{Share, Span, Time};

use super::Engine;
use crate::action::Action;
use crate::queue::State;
use crate::reason::Reason;
use crate::request::{Request, RequestId, Tier};
use crate::throttle::{Place, Rule, RuleId};

/// What of the slots goes to elephants although others wait for them.
pub(super) const FLOOR: Share = Share::new(0.02);

impl Engine {
    /// From now on these rules hold, and no others. Who waits under one that does not hold any more stands in the queue
    /// like everybody, if there is room.
    ///
    /// # Panics
    /// If there are more than 64.
    pub fn throttle(&mut self, now: Time, rules: &[(RuleId, Rule)], actions: &mut Vec<Action>) {
        for id in self.lanes.set(now, rules) {
            if let Some((out, reason)) = self.enter_queue(now, id) {
                actions.push(self.shed(now, out, reason));
            }
            // Nobody is refused while a slot is free.
            self.fill(now, actions);
        }
        self.fill(now, actions);
    }

    /// How many wait and run under each rule.
    pub fn throttled(&self) -> impl Iterator<Item = (RuleId, u32, u32)> + '_ {
        self.lanes.counts()
    }

    /// The lane of a request. A transaction has none, whatever the rule says: what earns is not held back.
    pub(super) fn lane_of(&self, request: &Request) -> Option<Place> {
        let browses = self.classes[request.class.index()].tier == Tier::Browse;
        request.rule.filter(|_| browses).and_then(|rule| self.lanes.of(rule))
    }

    /// Whether it may wait there; if not, what it is told.
    pub(super) fn enter_lane(&mut self, now: Time, id: RequestId, lane: Place) -> Option<Action> {
        let principal = self.requests.waiting(id).principal;
        let has_slot = self.running < self.limit.slots() && !self.requests.wants_slot();
        let wait = self.lanes.push(now, lane, (id, principal), has_slot).err()?;
        Some(self.throttle_out(now, id, wait))
    }

    /// Whether it waited in a lane; if so, it does no longer.
    pub(super) fn leave_lane(&mut self, id: RequestId) -> bool {
        let principal = self.requests.waiting(id).principal;
        self.lanes.leaves(id, principal)
    }

    /// Gives a slot to the elephant that is next, if one may start.
    pub(super) fn start_of_lanes(&mut self, now: Time, reason: Reason) -> Option<Action> {
        let requests = &self.requests;
        let id = self.lanes.next(now, |id| requests.waiting(id).since)?;
        let principal = self.requests.waiting(id).principal;
        self.lanes.starts(now, id, principal);
        Some(self.start(now, id, reason))
    }

    /// When a lane is next to be looked at.
    pub(super) fn next_in_lanes(&self) -> Option<Time> {
        if self.lanes.length() == 0 {
            return None;
        }
        let has_slot = self.running < self.limit.slots();
        self.lanes.next_timer(has_slot, |id| self.requests.waiting(id).since)
    }

    /// Refuses who has waited in a lane for as long as its rule lets it.
    pub(super) fn refuse_overdue_in_lanes(&mut self, now: Time, actions: &mut Vec<Action>) {
        let overdue =
            |engine: &Self| engine.lanes.overdue(now, |id| engine.requests.waiting(id).since);
        while let Some(id) = overdue(self) {
            self.leave_lane(id);
            actions.push(self.throttle_out(now, id, Span::ZERO));
        }
    }

    /// A rule would hold it back for longer than it lets it wait: that says nothing of how much there is to do.
    fn throttle_out(&mut self, now: Time, id: RequestId, wait: Span) -> Action {
        self.lost(now, id);
        self.did_not_arrive(now, id);
        self.requests.set(id, State::Free);
        let retry_after = self.retry_after.refused(now, wait, false);
        Action::Shed { id, reason: Reason::Throttled, retry_after }
    }
}
