//! A goal by the ratio of two levels' response times.
//!
//! Whoever's age, times her level's weight, is greatest gets the slot: *waiting time priority*, in which waiting times
//! of levels are, under load, as the inverse of their weights. The faster level's weight is the controller's; that of
//! all others is 1.
//!
//! Why not stride with a controlled weight: shares of slot time decide *whether* a level's queue grows, not how long it
//! is. Where half of the requests are of each level, a weight a little above 1 empties the faster level's queue and one
//! a little below fills it; the ratio wanted lies on that edge, and a controller can only fall off it on both sides in
//! turn. Weighted ages pull back by themselves: who has been served too seldom is old.
//!
//! What is controlled is the response, not the wait: what threads win for a request, and a mix that changes, are in it.
//! Every [`WINDOW`] requests, ln w += ½ ln(measured / target), by at most [`STEP`], between 1/[`MOST`] and [`MOST`].
//! Nothing is changed while levels hardly ever compete: a weight can do nothing then, and would run to its bound.

use bywash_units::{Span, Time};

use super::goal::{Standing, Verdict};
use super::table::{Occupant, Ticket};
use super::{Grant, LevelId};

/// Requests of both levels between two corrections.
const WINDOW: u32 = 100;
/// Of each level at least.
const EACH: u32 = 10;
/// Or so long, if that many of each were seen by then.
const PATIENCE: Span = Span::from_millis(500);
/// What was seen longer ago says nothing about now.
const STALE: Span = Span::from_secs(30);
/// Least share of slots in a window that levels competed for.
const CONTESTED: f64 = 0.05;
const STEP: f64 = 1.5;
const MOST: f64 = 64.0;
/// How far from the target still counts as held.
const NEAR: f64 = 0.1;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    count: u32,
    seconds: f64,
}

impl Seen {
    fn mean(self) -> f64 {
        self.seconds / f64::from(self.count)
    }
}

#[derive(Debug)]
pub(super) struct Ratio {
    fast: LevelId,
    slow: LevelId,
    target: f64,
    weight: f64,
    /// The window: since when, what was seen.
    since: Time,
    fast_seen: Seen,
    slow_seen: Seen,
    contests: u32,
    /// When a window was last full.
    measured: Time,
    /// Of the last windows, newer ones counting more: mean response times.
    means: Option<(f64, f64)>,
    verdict: Verdict,
}

impl Ratio {
    pub(super) fn new(fast: LevelId, slow: LevelId, target: f64) -> Self {
        Self {
            fast,
            slow,
            target,
            weight: (1.0 / target).min(MOST),
            since: Time::ZERO,
            measured: Time::ZERO,
            fast_seen: Seen::default(),
            slow_seen: Seen::default(),
            contests: 0,
            means: None,
            verdict: Verdict::Settling,
        }
    }

    pub(super) fn prefers<'w>(
        &mut self,
        wishes: &'w [(LevelId, Grant)],
        age: impl Fn(Ticket) -> Span,
    ) -> Option<&'w (LevelId, Grant)> {
        self.contests += 1;
        let weight = |level| if level == self.fast { self.weight } else { 1.0 };
        let pull = |wish: &&(LevelId, Grant)| weight(wish.0) * age(wish.1.ticket()).as_secs_f64();
        wishes.iter().max_by(|a, b| pull(a).total_cmp(&pull(b)))
    }

    pub(super) fn ended(&mut self, now: Time, ended: &Occupant) {
        if now.since(self.since) > STALE {
            (self.fast_seen, self.slow_seen, self.contests) = Default::default();
            (self.since, self.means) = (now, None);
        }
        let seen = if ended.level == self.fast {
            &mut self.fast_seen
        } else if ended.level == self.slow {
            &mut self.slow_seen
        } else {
            return;
        };
        seen.count += 1;
        seen.seconds += ended.response.as_secs_f64();
        let all = self.fast_seen.count + self.slow_seen.count;
        let each = self.fast_seen.count.min(self.slow_seen.count);
        if each >= EACH && (all >= WINDOW || now.since(self.since) >= PATIENCE) {
            self.correct();
            (self.since, self.measured) = (now, now);
        }
    }

    fn correct(&mut self) {
        let (fast, slow) = (self.fast_seen.mean(), self.slow_seen.mean());
        let all = self.fast_seen.count + self.slow_seen.count;
        let contested = f64::from(self.contests) >= CONTESTED * f64::from(all);
        (self.fast_seen, self.slow_seen, self.contests) = (Seen::default(), Seen::default(), 0);
        let (fast_mean, slow_mean) = self.means.unwrap_or((fast, slow));
        let means = (fast_mean + 0.2 * (fast - fast_mean), slow_mean + 0.2 * (slow - slow_mean));
        self.means = Some(means);
        let off = fast / slow / self.target;
        // A clock may be too coarse to see that any time passed.
        if contested && off.is_finite() {
            let step = libm::sqrt(off).clamp(1.0 / STEP, STEP);
            self.weight = (self.weight * step).clamp(1.0 / MOST, MOST);
        }
        let lately = means.0 / means.1 / self.target;
        self.verdict = if (lately - 1.0).abs() <= NEAR {
            Verdict::Held
        } else if lately < 1.0 && (!contested || self.weight <= 1.0 / MOST) {
            Verdict::Exceeded
        } else if lately > 1.0 && (!contested || self.weight >= MOST) {
            Verdict::Infeasible
        } else {
            Verdict::Settling
        };
    }

    pub(super) fn standing(&self, now: Time) -> Standing {
        let is_fresh = now.since(self.measured) <= STALE;
        let measured = self.means.map(|(fast, slow)| fast / slow);
        Standing {
            verdict: if is_fresh { self.verdict } else { Verdict::Settling },
            measured: measured.filter(|ratio| is_fresh && ratio.is_finite()),
            effort: self.weight,
        }
    }
}
