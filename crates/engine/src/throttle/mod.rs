//! Throttles: rules on elephants that an operator has approved.
//!
//! Source: POLICIES §9; seed 5 fences elephants off in the network [seed 5.6], after their work is done; here they wait
//! before it. A request that a rule is for does not stand in the queue of all others, but in its rule's *lane*:
//!
//! - **Ants first.** It gets a slot when no other request waits for one. So that nobody starves there is a floor share.
//! - **As many at once** as the rule says: the processors of the resource that they fill, mostly. What runs at once in
//!   an application shares its processors, with ants too, and a slot more for an elephant only slows all down.
//! - **A rate**, if the rule has one: starts a second, by what one of them costs.
//! - **Pushback.** Whoever would have to wait longer than the rule says is refused when it comes, and told when to come
//!   again; whoever has waited so long in vain, then. So a lane stays as short as its clients' patience.
//! - One principal has no more than a quarter of a lane's places.
//!
//! The lane is work-conserving: a slot that no ant wants is an elephant's, up to as many at once. Within a lane the
//! oldest goes first, as pushback keeps everybody's wait short; among lanes the one whose oldest has waited longest.

mod lane;
mod tokens;

use alloc::vec::Vec;

use bywash_units::{Rate, Span, Time};

use crate::queue::{Lists, Principal};
use crate::request::RequestId;
use lane::Lane;

/// A rule's number: given once, never again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// What a rule grants the elephants that it is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// How many may run at once; none is taken for one.
    pub at_once: u32,
    /// How many may start in a second; `None`: as many as there is room for.
    pub rate: Option<Rate>,
    /// How many may wait.
    pub queue: u32,
    /// Who would have to wait longer is refused.
    pub wait: Span,
}

impl Rule {
    /// As many at once, and what is usual otherwise.
    pub const fn at_once(at_once: u32) -> Self {
        Self { at_once, rate: None, queue: 100, wait: Span::from_secs(10) }
    }
}

/// The lanes of all rules.
#[derive(Debug)]
pub(crate) struct Lanes {
    rules: Vec<Lane>,
    waiting: Lists,
    running: Lists,
}

/// Which of the lanes: an index that holds until the rules are set anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(usize);

impl Lanes {
    /// How many rules there can be.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn none() -> Self {
        Self { rules: Vec::new(), waiting: Lists::new(Self::MOST), running: Lists::new(Self::MOST) }
    }

    /// From now on these rules hold. One that goes on keeps what waits and runs under it; who waits under one that does
    /// not is given back, oldest first.
    ///
    /// # Panics
    /// If there are more than [`Lanes::MOST`].
    pub(crate) fn set(&mut self, now: Time, rules: &[(RuleId, Rule)]) -> Vec<RequestId> {
        assert!(rules.len() <= Self::MOST, "{} rules are more than {}", rules.len(), Self::MOST);
        let before = core::mem::replace(self, Self::none());
        let mut released = Vec::new();
        self.rules = rules.iter().map(|(id, rule)| Lane::new(now, *id, *rule)).collect();
        for (from, lane) in before.rules.into_iter().enumerate() {
            let Some(Place(to)) = self.of(lane.id()) else {
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

    /// The lane of a rule, if it is in force.
    pub(crate) fn of(&self, rule: RuleId) -> Option<Place> {
        self.rules.iter().position(|lane| lane.id() == rule).map(Place)
    }

    /// Requests that wait in all lanes.
    pub(crate) const fn length(&self) -> usize {
        self.waiting.total()
    }

    /// How many wait and run under each rule.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (RuleId, u32, u32)> + '_ {
        let counts = |(at, lane): (usize, &Lane)| {
            (lane.id(), self.waiting.length(at), self.running.length(at))
        };
        self.rules.iter().enumerate().map(counts)
    }

    /// A request wants to wait in this lane, if only for the moment until it starts; `has_slot`: there is one for it. If
    /// it may not: when it may come again.
    pub(crate) fn push(
        &mut self,
        now: Time,
        Place(at): Place,
        (id, principal): (RequestId, Option<Principal>),
        has_slot: bool,
    ) -> Result<(), Span> {
        let (length, runs) = (self.waiting.length(at), self.running.length(at));
        let starts = has_slot && length == 0 && self.rules[at].may_start(now, runs);
        self.rules[at].admit(now, (length, runs), principal, starts)?;
        self.waiting.push_back(at, id);
        Ok(())
    }

    /// Who is next to start, if anybody may.
    pub(crate) fn next(&self, now: Time, since: impl Fn(RequestId) -> Time) -> Option<RequestId> {
        let heads = self.rules.iter().enumerate().filter_map(|(at, lane)| {
            let head = self.waiting.front(at)?;
            lane.may_start(now, self.running.length(at)).then(|| (since(head), head))
        });
        heads.min().map(|(_, head)| head)
    }

    /// Whether somebody could start if there were a slot.
    pub(crate) fn wants_slot(&self, now: Time) -> bool {
        let wants = |(at, lane): (usize, &Lane)| {
            self.waiting.length(at) > 0 && lane.may_start(now, self.running.length(at))
        };
        self.rules.iter().enumerate().any(wants)
    }

    /// Who waits in a lane has got a slot.
    pub(crate) fn starts(&mut self, now: Time, id: RequestId, principal: Option<Principal>) {
        let Some(at) = self.waiting.remove(id) else { return };
        self.rules[at].starts(now, self.waiting.length(at), principal);
        self.running.push_back(at, id);
    }

    /// Whether it waits in a lane; if so, it does no longer.
    pub(crate) fn leaves(&mut self, id: RequestId, principal: Option<Principal>) -> bool {
        let Some(at) = self.waiting.remove(id) else { return false };
        self.rules[at].leaves(self.waiting.length(at), principal);
        true
    }

    /// A request has given its slot back.
    pub(crate) fn ended(&mut self, id: RequestId) {
        self.running.remove(id);
    }

    /// Somebody who has waited for as long as its rule lets it.
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

    /// When somebody will have waited too long, or a rate lets another start; `has_slot`: there is one for it.
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
