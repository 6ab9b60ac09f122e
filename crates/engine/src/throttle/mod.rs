//! Throttles: rules, approved by an operator, that restrict elephants (expensive requests).
//!
//! Source: `policies.md` §9. Paper 5 restricts elephants in the network, after their work is done
//! [paper 5.6]. Here they wait before the work. A request under a rule does not wait in the common
//! queue. It waits in the rule's own queue, its *lane*:
//!
//! - **Other requests first.** An elephant gets a slot when no other request (an *ant*) waits for
//!   one. A floor share keeps elephants from starving.
//! - **Limited concurrency.** A rule says how many of its elephants may run at once. Usually that
//!   is the number of processors of the resource that they saturate. Requests that run at once in
//!   an application share its processors, so another slot for an elephant only slows all of them
//!   down.
//! - **A rate**, if the rule has one: starts per second, according to the cost of one request.
//! - **Pushback.** A request that would have to wait longer than the rule allows is refused on
//!   arrival, with a time after which to retry. A request that has waited that long is refused,
//!   too. So a lane stays as short as its clients' patience.
//! - **Principals.** One principal has at most a quarter of a lane's places.
//!
//! Lanes are work-conserving: an elephant gets any slot that no ant wants, up to the rule's
//! concurrency. Within a lane the oldest request goes first, because pushback keeps every wait
//! short. Among lanes, the one whose oldest request has waited longest goes first.

mod lane;
mod tokens;

use alloc::vec::Vec;

use bywash_units::{Rate, Time, TimeSpan};

use crate::lists::Lists;
use crate::queue::Principal;
use crate::request::{RequestId, RuleId};
use lane::Lane;

/// The limits that a rule sets for the requests under it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The maximum number of requests that run at once; 0 counts as 1.
    pub max_concurrency: u32,
    /// The maximum number of requests that start per second; `None` for no limit.
    pub rate: Option<Rate>,
    /// The maximum number of requests that wait.
    pub queue: u32,
    /// The maximum wait. A request that would have to wait longer is refused on arrival.
    pub wait: TimeSpan,
}

impl Rule {
    /// Creates a rule with this concurrency limit, and the default values for the rest.
    pub const fn max_concurrency(max_concurrency: u32) -> Self {
        Self { max_concurrency, rate: None, queue: 100, wait: TimeSpan::from_secs(10) }
    }
}

/// The lanes of all rules: the requests that wait and run under each.
#[derive(Debug)]
pub(crate) struct Lanes {
    rules: Vec<Lane>,
    waiting: Lists,
    running: Lists,
}

/// The index of a lane. It is valid until [`Lanes::set`] is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneIndex(usize);

impl Lanes {
    /// The maximum number of rules that can be in force.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn none() -> Self {
        Self { rules: Vec::new(), waiting: Lists::new(Self::MOST), running: Lists::new(Self::MOST) }
    }

    /// Replaces the rules. A rule that is in the old and the new list keeps its waiting and running
    /// requests. Returns the requests that wait under removed rules, oldest first.
    ///
    /// # Panics
    /// Panics if there are more than [`Lanes::MOST`] rules.
    pub(crate) fn set(&mut self, now: Time, rules: &[(RuleId, Rule)]) -> Vec<RequestId> {
        assert!(rules.len() <= Self::MOST, "{} rules are more than {}", rules.len(), Self::MOST);
        let before = core::mem::replace(self, Self::none());
        let mut released = Vec::new();
        self.rules = rules.iter().map(|(id, rule)| Lane::new(now, *id, *rule)).collect();
        for (from, lane) in before.rules.into_iter().enumerate() {
            let Some(LaneIndex(to)) = self.of(lane.id()) else {
                released.extend(before.waiting.iter(from));
                continue;
            };
            let rule = self.rules[to].rule();
            self.rules[to] = lane.under(now, rule);
            before.waiting.iter(from).for_each(|id| self.waiting.push_back(to, id));
            before.running.iter(from).for_each(|id| self.running.push_back(to, id));
        }
        released
    }

    /// Returns the lane of a rule; `None` if the rule is not in force.
    pub(crate) fn of(&self, rule: RuleId) -> Option<LaneIndex> {
        self.rules.iter().position(|lane| lane.id() == rule).map(LaneIndex)
    }

    /// Returns the total number of requests that wait in lanes.
    pub(crate) const fn length(&self) -> usize {
        self.waiting.total()
    }

    /// Returns, for each rule, the number of waiting requests and the number of running requests.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (RuleId, u32, u32)> + '_ {
        let counts = |(at, lane): (usize, &Lane)| {
            (lane.id(), self.waiting.length(at), self.running.length(at))
        };
        self.rules.iter().enumerate().map(counts)
    }

    /// Adds a request to a lane. A request that starts immediately afterwards is also added.
    /// `has_slot` says whether there is a free slot for it.
    ///
    /// # Errors
    /// If the request may not wait, returns the time after which its client may retry.
    pub(crate) fn push(
        &mut self,
        now: Time,
        LaneIndex(at): LaneIndex,
        (id, principal): (RequestId, Option<Principal>),
        has_slot: bool,
    ) -> Result<(), TimeSpan> {
        let (length, runs) = (self.waiting.length(at), self.running.length(at));
        let starts = has_slot && length == 0 && self.rules[at].may_start(now, runs);
        self.rules[at].admit(now, (length, runs), principal, starts)?;
        self.waiting.push_back(at, id);
        Ok(())
    }

    /// Returns the next request to start: of the lanes whose rules let one start now, the one that
    /// has waited longest. Returns `None` if there is none.
    pub(crate) fn next(&self, now: Time, since: impl Fn(RequestId) -> Time) -> Option<RequestId> {
        let heads = self.rules.iter().enumerate().filter_map(|(at, lane)| {
            let head = self.waiting.front(at)?;
            lane.may_start(now, self.running.length(at)).then(|| (since(head), head))
        });
        heads.min().map(|(_, head)| head)
    }

    /// Returns whether a request in a lane could start if there were a free slot.
    pub(crate) fn wants_slot(&self, now: Time) -> bool {
        let wants = |(at, lane): (usize, &Lane)| {
            self.waiting.length(at) > 0 && lane.may_start(now, self.running.length(at))
        };
        self.rules.iter().enumerate().any(wants)
    }

    /// Notes that a request has got a slot. It leaves the waiting requests of its lane and counts
    /// as running.
    pub(crate) fn starts(&mut self, now: Time, id: RequestId, principal: Option<Principal>) {
        let Some(at) = self.waiting.remove(id) else { return };
        self.rules[at].starts(now, self.waiting.length(at), principal);
        self.running.push_back(at, id);
    }

    /// Removes a waiting request from its lane. Returns whether it waited in one.
    pub(crate) fn leaves(&mut self, id: RequestId, principal: Option<Principal>) -> bool {
        let Some(at) = self.waiting.remove(id) else { return false };
        self.rules[at].leaves(self.waiting.length(at), principal);
        true
    }

    /// Notes that a request has given its slot back.
    pub(crate) fn ended(&mut self, id: RequestId) {
        self.running.remove(id);
    }

    /// Returns a request that has waited for as long as its rule allows; `None` if there is none.
    pub(crate) fn overdue(
        &self,
        now: Time,
        since: impl Fn(RequestId) -> Time,
    ) -> Option<RequestId> {
        let due = |(at, lane): (usize, &Lane)| {
            let head = self.waiting.front(at)?;
            (since(head) + lane.rule().wait <= now).then_some(head)
        };
        self.rules.iter().enumerate().find_map(due)
    }

    /// Returns the next time at which a waiting request reaches the maximum wait of its rule, or a
    /// rate lets another request start. `has_slot` says whether there is a free slot for that
    /// request.
    pub(crate) fn next_timer(
        &self,
        has_slot: bool,
        since: impl Fn(RequestId) -> Time,
    ) -> Option<Time> {
        let times = self.rules.iter().enumerate().filter_map(|(at, lane)| {
            let head = self.waiting.front(at)?;
            let overdue = since(head) + lane.rule().wait;
            let start = lane.next_start(self.running.length(at)).filter(|_| has_slot);
            Some(start.map_or(overdue, |start| start.min(overdue)))
        });
        times.min()
    }
}
