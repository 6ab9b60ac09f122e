//! Requests under a throttle rule, which wait in the rule's lane and not in the queue.

use alloc::vec::Vec;

use bywash_units::{Ratio, Time, TimeSpan};

use super::Engine;
use crate::action::Action;
use crate::queue::State;
use crate::reason::Reason;
use crate::request::RuleId;
use crate::request::{Request, RequestId, Tier};
use crate::throttle::{LaneIndex, Rule};

/// The share of the slots that requests under throttle rules get although others wait.
pub(super) const FLOOR: Ratio = Ratio::new(0.02);

impl Engine {
    /// Replaces all rules. Requests that wait under a removed rule enter the queue like any other
    /// request. If the queue is full, they may be refused.
    ///
    /// # Panics
    /// Panics if there are more than 64 rules.
    pub fn throttle(&mut self, now: Time, rules: &[(RuleId, Rule)], actions: &mut Vec<Action>) {
        for id in self.lanes.set(now, rules) {
            if let Some((out, reason)) = self.enter_queue(now, id) {
                actions.push(self.shed(now, out, reason));
            }
            // Free slots are given first, because no request may be refused while a slot is free.
            self.fill(now, actions);
        }
        self.fill(now, actions);
    }

    /// Returns, for each rule, the number of waiting requests and the number of running requests.
    pub fn throttled(&self) -> impl Iterator<Item = (RuleId, u32, u32)> + '_ {
        self.lanes.counts()
    }

    /// Returns the lane in which a request has to wait; `None` if no rule applies. No rule applies
    /// to a transaction, because requests that bring revenue are not throttled.
    pub(super) fn lane_of(&self, request: &Request) -> Option<LaneIndex> {
        let browses = self.classes[request.class.index()].tier == Tier::Browsing;
        request.rule.filter(|_| browses).and_then(|rule| self.lanes.of(rule))
    }

    /// Adds a request to a lane. If it may not wait there, returns the action that refuses it.
    pub(super) fn enter_lane(
        &mut self,
        now: Time,
        id: RequestId,
        lane: LaneIndex,
    ) -> Option<Action> {
        let principal = self.requests.waiting(id).principal;
        let has_slot = self.running < self.slots() && !self.requests.wants_slot();
        let wait = self.lanes.push(now, lane, (id, principal), has_slot).err()?;
        Some(self.throttle_out(now, id, wait))
    }

    /// Removes a waiting request from its lane. Returns whether it was in one.
    pub(super) fn leave_lane(&mut self, id: RequestId) -> bool {
        let principal = self.requests.waiting(id).principal;
        self.lanes.leaves(id, principal)
    }

    /// Gives a slot to the next request of the lanes; `None` if none may start.
    pub(super) fn start_of_lanes(&mut self, now: Time, reason: Reason) -> Option<Action> {
        let requests = &self.requests;
        let id = self.lanes.next(now, |id| requests.waiting(id).since)?;
        let principal = self.requests.waiting(id).principal;
        self.lanes.starts(now, id, principal);
        Some(self.start(now, id, reason))
    }

    /// Returns the next time at which a lane must be checked: a request has waited too long, or a
    /// rate lets one start.
    pub(super) fn next_in_lanes(&self) -> Option<Time> {
        if self.lanes.length() == 0 {
            return None;
        }
        let has_slot = self.running < self.slots();
        self.lanes.next_timer(has_slot, |id| self.requests.waiting(id).since)
    }

    /// Refuses the requests that have waited in a lane for the maximum time of its rule.
    pub(super) fn refuse_overdue_in_lanes(&mut self, now: Time, actions: &mut Vec<Action>) {
        let overdue =
            |engine: &Self| engine.lanes.overdue(now, |id| engine.requests.waiting(id).since);
        while let Some(id) = overdue(self) {
            self.leave_lane(id);
            actions.push(self.throttle_out(now, id, TimeSpan::ZERO));
        }
    }

    /// Refuses a request that would wait for longer than its rule allows. The refusal is
    /// not evidence of overload.
    fn throttle_out(&mut self, now: Time, id: RequestId, wait: TimeSpan) -> Action {
        self.lost(now, id);
        self.report_no_outcome(now, id);
        self.requests.set(id, State::Free);
        let retry_after = self.retry_after.refused(now, wait, false);
        Action::Shed { id, reason: Reason::Throttled, retry_after }
    }
}
