//! One rule's lane: what may start, and how long who comes last would have to wait.

use bywash_units::{Span, Time};

use super::tokens::Tokens;
use super::{Rule, RuleId};
use crate::queue::{Principal, Principals};

/// What is known of a lane but for who is in it.
#[derive(Debug)]
pub(super) struct Lane {
    id: RuleId,
    rule: Rule,
    tokens: Option<Tokens>,
    principals: Principals,
    /// Mean time between two starts while somebody waits, if that was ever seen.
    gap: Option<Span>,
    /// When the last one started.
    started: Time,
    /// Since when somebody waits, if anybody does.
    waits_since: Option<Time>,
}

/// Weight of a new gap: the last ten or so count.
const WEIGHT: f64 = 0.1;

impl Lane {
    pub(super) fn new(now: Time, id: RuleId, rule: Rule) -> Self {
        let tokens = rule.rate.map(|rate| Tokens::new(now, rate));
        let principals = Principals::new(rule.queue);
        Self { id, rule, tokens, principals, gap: None, started: now, waits_since: None }
    }

    /// The same under another rule.
    pub(super) fn under(self, now: Time, rule: Rule) -> Self {
        let tokens = rule.rate.map(|rate| match self.tokens {
            Some(tokens) => tokens.at(now, rate),
            None => Tokens::new(now, rate),
        });
        // How fast the lane drained under the old rule says nothing of the new one.
        let gap = self.gap.filter(|_| rule == self.rule);
        Self { rule, tokens, gap, ..self }
    }

    pub(super) const fn id(&self) -> RuleId {
        self.id
    }

    pub(super) const fn rule(&self) -> Rule {
        self.rule
    }

    /// Somebody wants to wait behind so many, while so many run, or `starts` at once. If it may not: after how long
    /// there may be a place.
    pub(super) fn admit(
        &mut self,
        now: Time,
        (length, runs): (u32, u32),
        principal: Option<Principal>,
        starts: bool,
    ) -> Result<(), Span> {
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

    /// How long who waits behind so many will: at the pace at which those before it start.
    fn expected_wait(&self, now: Time, length: u32, runs: u32) -> Span {
        let is_full = runs >= self.rule.at_once.max(1);
        if length == 0 && !is_full && self.tokens.is_none() {
            return Span::ZERO;
        }
        // Where nobody has started for long although somebody could, the next gap is at least as long.
        let present =
            now.since(self.waits_since.map_or(self.started, |since| since.max(self.started)));
        let seen = self.gap.unwrap_or(Span::ZERO).max(present);
        let gap = self.tokens.map_or(seen, |tokens| tokens.gap().max(seen));
        let ready = self.tokens.map_or(gap, |tokens| tokens.ready().since(now));
        let first = if is_full { ready.max(gap) } else { ready };
        first + gap * u64::from(length)
    }

    /// Whether one may start while so many run.
    pub(super) fn may_start(&self, now: Time, runs: u32) -> bool {
        self.next_start(runs).is_some_and(|at| at <= now)
    }

    /// When one may start while so many run; `None`: when one of those has ended.
    pub(super) fn next_start(&self, runs: u32) -> Option<Time> {
        let ready = self.tokens.map_or(Time::ZERO, |tokens| tokens.ready());
        (runs < self.rule.at_once.max(1)).then_some(ready)
    }

    /// One has started, and so many wait still.
    pub(super) fn starts(&mut self, now: Time, left: u32, principal: Option<Principal>) {
        self.principals.take(principal);
        if let Some(tokens) = &mut self.tokens {
            tokens.take(now);
        }
        let since = self.waits_since.filter(|since| *since < now);
        if let Some(since) = since {
            // A longer one would have everybody refused who would wait, and nobody would learn that it was a single one.
            let gap = now.since(since.max(self.started)).min(self.rule.wait);
            let learned = |mean: Span| mean.scale(1.0 - WEIGHT) + gap.scale(WEIGHT);
            self.gap = Some(self.gap.map_or(gap, learned));
        }
        self.started = now;
        self.waits_since = self.waits_since.filter(|_| left > 0);
    }

    /// One has gone without having started, and so many wait still.
    pub(super) fn leaves(&mut self, left: u32, principal: Option<Principal>) {
        self.principals.take(principal);
        self.waits_since = self.waits_since.filter(|_| left > 0);
    }
}
