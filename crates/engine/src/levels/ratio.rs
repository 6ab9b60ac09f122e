//! The controller for a goal for the ratio of two levels' response times.
//!
//! The request with the greatest product of age and level weight gets the slot. This is *waiting
//! time priority*: under load, the waiting times of levels are in inverse proportion to their
//! weights. The controller sets the weight of the faster level. That of all other levels is 1.
//!
//! Stride scheduling with a controlled weight does not work. Shares of slot time decide *whether* a
//! level's queue grows, not how long it is. If half of the requests are of each level, a weight
//! slightly above 1 empties the faster level's queue, and one slightly below fills it. The wanted
//! ratio lies on that edge, so a controller would overshoot to both sides in turn. Weighted ages
//! correct themselves: a request that has been served too late is old.
//!
//! The controlled quantity is the response time, not the wait. So it includes what a request gains
//! by more threads, and a mix of requests that changes. Every [`WINDOW`] requests, the weight w
//! changes by ln w += ½ ln(measured / target). One change is at most by the factor [`STEP`], and w
//! stays between 1/[`MOST`] and [`MOST`]. The weight does not change while levels hardly ever
//! compete. It would have no effect then, and would move to its bound.

use bywash_units::{Time, TimeSpan};

use super::goal::{GoalState, Verdict};
use super::table::{Occupant, Ticket};
use super::{Grant, LevelId};

/// The number of requests of both levels together between two corrections of the weight.
const WINDOW: u32 = 100;
/// The minimum number of requests of each level for a correction.
const MIN_REQUESTS: u32 = 10;
/// The time after which the weight is corrected even with fewer than [`WINDOW`] requests, if there
/// are [`MIN_REQUESTS`] of each level.
const PATIENCE: TimeSpan = TimeSpan::from_millis(500);
/// The age above which a measurement no longer counts.
const STALE: TimeSpan = TimeSpan::from_secs(30);
/// The minimum mean number of slots per request for which levels competed. A window below this
/// number does not correct the weight.
const MIN_CONTESTED_SHARE: f64 = 0.05;
const STEP: f64 = 1.5;
const MOST: f64 = 64.0;
/// The goal counts as held if the ratio differs from its target by at most this fraction.
const TARGET_TOLERANCE: f64 = 0.1;

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
    /// The start of the present window, in which `fast_seen`, `slow_seen` and `contests` are
    /// counted.
    since: Time,
    fast_seen: Seen,
    slow_seen: Seen,
    contests: u32,
    /// The time at which the last complete window ended.
    measured: Time,
    /// The mean response times of the fast and the slow level, in seconds, smoothed over the last
    /// windows.
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
        candidates: &'w [(LevelId, Grant)],
        age: impl Fn(Ticket) -> TimeSpan,
    ) -> Option<&'w (LevelId, Grant)> {
        self.contests += 1;
        let weight = |level| if level == self.fast { self.weight } else { 1.0 };
        let pull = |candidate: &&(LevelId, Grant)| {
            weight(candidate.0) * age(candidate.1.ticket()).as_secs_f64()
        };
        candidates.iter().max_by(|a, b| pull(a).total_cmp(&pull(b)))
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
        if each >= MIN_REQUESTS && (all >= WINDOW || now.since(self.since) >= PATIENCE) {
            self.correct();
            (self.since, self.measured) = (now, now);
        }
    }

    fn correct(&mut self) {
        let (fast, slow) = (self.fast_seen.mean(), self.slow_seen.mean());
        let all = self.fast_seen.count + self.slow_seen.count;
        let contested = f64::from(self.contests) >= MIN_CONTESTED_SHARE * f64::from(all);
        (self.fast_seen, self.slow_seen, self.contests) = (Seen::default(), Seen::default(), 0);
        let (fast_mean, slow_mean) = self.means.unwrap_or((fast, slow));
        let means = (fast_mean + 0.2 * (fast - fast_mean), slow_mean + 0.2 * (slow - slow_mean));
        self.means = Some(means);
        let off = fast / slow / self.target;
        // A coarse clock may show no response time at all, so the quotient may be infinite or NaN.
        if contested && off.is_finite() {
            let step = libm::sqrt(off).clamp(1.0 / STEP, STEP);
            self.weight = (self.weight * step).clamp(1.0 / MOST, MOST);
        }
        let lately = means.0 / means.1 / self.target;
        self.verdict = if (lately - 1.0).abs() <= TARGET_TOLERANCE {
            Verdict::Held
        } else if lately < 1.0 && (!contested || self.weight <= 1.0 / MOST) {
            Verdict::Exceeded
        } else if lately > 1.0 && (!contested || self.weight >= MOST) {
            Verdict::Infeasible
        } else {
            Verdict::Settling
        };
    }

    pub(super) fn standing(&self, now: Time) -> GoalState {
        let is_fresh = now.since(self.measured) <= STALE;
        let measured = self.means.map(|(fast, slow)| fast / slow);
        GoalState {
            verdict: if is_fresh { self.verdict } else { Verdict::Settling },
            measured: measured.filter(|ratio| is_fresh && ratio.is_finite()),
            effort: self.weight,
        }
    }
}
