//! The queue of one throttle rule (its lane): which requests may start, and how long a new one
//! would have to wait.

use bywash_units::{Time, TimeSpan};

use super::Rule;
use super::tokens::Tokens;
use crate::queue::{Principal, Principals};
use crate::request::RuleId;

/// The state of a lane, except for the list of its requests.
#[derive(Debug)]
pub(super) struct Lane {
    id: RuleId,
    rule: Rule,
    tokens: Option<Tokens>,
    principals: Principals,
    /// The mean time between two starts while requests wait; `None` until one has been measured.
    gap: Option<TimeSpan>,
    /// The time of the last start of a request.
    started: Time,
    /// The time since which at least one request has waited; `None` if none waits.
    waits_since: Option<Time>,
}

/// The weight of a new gap between starts in the mean. About the last ten gaps count.
const WEIGHT: f64 = 0.1;

impl Lane {
    pub(super) fn new(now: Time, id: RuleId, rule: Rule) -> Self {
        let tokens = rule.rate.map(|rate| Tokens::new(now, rate));
        let principals = Principals::new(rule.queue);
        Self { id, rule, tokens, principals, gap: None, started: now, waits_since: None }
    }

    /// Returns this lane under another rule. The lane keeps its requests and the taken tokens.
    pub(super) fn under(self, now: Time, rule: Rule) -> Self {
        let tokens = rule.rate.map(|rate| match self.tokens {
            Some(tokens) => tokens.at(now, rate),
            None => Tokens::new(now, rate),
        });
        // The pace at which the lane drained under the old rule says nothing about the new one.
        let gap = self.gap.filter(|_| rule == self.rule);
        Self { rule, tokens, gap, ..self }
    }

    pub(super) const fn id(&self) -> RuleId {
        self.id
    }

    pub(super) const fn rule(&self) -> Rule {
        self.rule
    }

    /// Admits a request to the lane, or refuses it. `length` and `runs` are the numbers of waiting
    /// and of running requests of the lane. `starts` says whether the request starts immediately.
    ///
    /// # Errors
    /// If the request may not wait, returns the time after which a place may be free.
    pub(super) fn admit(
        &mut self,
        now: Time,
        (length, runs): (u32, u32),
        principal: Option<Principal>,
        starts: bool,
    ) -> Result<(), TimeSpan> {
        let wait = self.expected_wait(now, length, runs);
        let has_many = self.principals.of(principal) >= (self.rule.queue / 4).max(1);
        let has_no_place = has_many || length >= self.rule.queue || wait > self.rule.wait;
        if has_no_place && !starts {
            return Err(wait);
        }
        self.principals.add(principal);
        self.waits_since.get_or_insert(now);
        Ok(())
    }

    /// Returns the expected wait of a request behind `length` others, at the present pace of
    /// starts. `runs` is the number of running requests of the lane.
    fn expected_wait(&self, now: Time, length: u32, runs: u32) -> TimeSpan {
        let is_full = runs >= self.rule.max_concurrency.max(1);
        if length == 0 && !is_full && self.tokens.is_none() {
            return TimeSpan::ZERO;
        }
        // If no request has started for long although some waited, the next gap is at least that
        // long.
        let present =
            now.since(self.waits_since.map_or(self.started, |since| since.max(self.started)));
        let seen = self.gap.unwrap_or(TimeSpan::ZERO).max(present);
        let gap = self.tokens.map_or(seen, |tokens| tokens.gap().max(seen));
        let ready = self.tokens.map_or(gap, |tokens| tokens.ready().since(now));
        let first = if is_full { ready.max(gap) } else { ready };
        first + gap * u64::from(length)
    }

    /// Returns whether a request of the lane may start now. `runs` is the number of running
    /// requests of the lane.
    pub(super) fn may_start(&self, now: Time, runs: u32) -> bool {
        self.next_start(runs).is_some_and(|at| at <= now)
    }

    /// Returns the earliest time at which a request may start. `runs` is the number of running
    /// requests of the lane. Returns `None` if one of those has to end first.
    pub(super) fn next_start(&self, runs: u32) -> Option<Time> {
        let ready = self.tokens.map_or(Time::ZERO, |tokens| tokens.ready());
        (runs < self.rule.max_concurrency.max(1)).then_some(ready)
    }

    /// Notes that a request has started. `left` is the number of requests that still wait in the
    /// lane.
    pub(super) fn starts(&mut self, now: Time, left: u32, principal: Option<Principal>) {
        self.principals.take(principal);
        if let Some(tokens) = &mut self.tokens {
            tokens.take(now);
        }
        let since = self.waits_since.filter(|since| *since < now);
        if let Some(since) = since {
            // The gap is capped. A longer one would cause the refusal of every later request, so
            // that no start could correct it.
            let gap = now.since(since.max(self.started)).min(self.rule.wait);
            let learned = |mean: TimeSpan| mean.scale(1.0 - WEIGHT) + gap.scale(WEIGHT);
            self.gap = Some(self.gap.map_or(gap, learned));
        }
        self.started = now;
        self.waits_since = self.waits_since.filter(|_| left > 0);
    }

    /// Notes that a request has left the lane without having started. `left` is the number of
    /// requests that still wait.
    pub(super) fn leaves(&mut self, left: u32, principal: Option<Principal>) {
        self.principals.take(principal);
        self.waits_since = self.waits_since.filter(|_| left > 0);
    }
}
