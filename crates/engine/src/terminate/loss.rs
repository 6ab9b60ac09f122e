//! The termination policy of paper 2: the more requests are lost, the less running time is granted.
//!
//! Source: paper 2, SERT §3.2 [paper 2.2]. *p* is the fraction of the requests of a class that
//! arrived in an interval and were refused or stopped. The threshold of the next interval is LB +
//! F(p)(UB − LB). F is 1 up to the low watermark LW, 0 from the high watermark HW on, and ((HW −
//! p)/(HW − LW))^α between.
//!
//! Losses that have nothing to do with load are not in p. These are requests beyond a principal's
//! limit of waiting requests, and requests whose clients left. A request that arrives and leaves
//! within an interval does not count as an arrival either. Otherwise a crowd that leaves would make
//! the loss of the remaining clients look small.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use super::TerminationSettings;
use super::{Ran, RunOutcome, Terminate};
use crate::request::Bounds;
use crate::request::ClassId;

/// The termination policy of paper 2. See the module documentation.
#[derive(Debug)]
pub struct Loss {
    alpha: f64,
    low: f64,
    high: f64,
    interval: TimeSpan,
    since: Time,
    classes: Vec<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: u32,
    lost: u32,
    /// The fraction of the class's requests that were lost in the last complete interval.
    p: f64,
}

impl Loss {
    pub(crate) fn new(settings: &TerminationSettings) -> Self {
        Self {
            alpha: settings.number("alpha"),
            low: settings.share("low").get(),
            high: settings.share("high").get(),
            interval: settings.span("interval"),
            since: Time::ZERO,
            classes: Vec::new(),
        }
    }

    /// Returns F(p): the granted fraction of the time between the lower and the upper bound.
    fn granted(&self, p: f64) -> f64 {
        if p <= self.low {
            1.0
        } else if p >= self.high {
            0.0
        } else {
            libm::pow((self.high - p) / (self.high - self.low), self.alpha)
        }
    }

    fn of(&mut self, class: ClassId) -> &mut Counts {
        if self.classes.len() <= class.index() {
            self.classes.resize(class.index() + 1, Counts::default());
        }
        &mut self.classes[class.index()]
    }
}

impl Terminate for Loss {
    fn tick(&mut self, now: Time) {
        let passed = now.since(self.since).as_nanos() / self.interval.as_nanos();
        if passed == 0 {
            return;
        }
        self.since = self.since + self.interval * passed;
        for counts in &mut self.classes {
            // If several intervals have passed, the last of them had no arrivals, so its loss is
            // zero. A request that was stopped in an interval without arrivals had arrived earlier.
            let all = if passed == 1 { counts.arrived } else { 0 };
            let p = if all > 0 { f64::from(counts.lost) / f64::from(all) } else { 0.0 }.min(1.0);
            *counts = Counts { p, ..Counts::default() };
        }
    }

    fn arrived(&mut self, class: ClassId) {
        self.of(class).arrived += 1;
    }

    fn left(&mut self, class: ClassId, came: Time) {
        if came >= self.since {
            let counts = self.of(class);
            counts.arrived = counts.arrived.saturating_sub(1);
        }
    }

    fn lost(&mut self, class: ClassId) {
        self.of(class).lost += 1;
    }

    fn ended(&mut self, ran: Ran) {
        self.of(ran.class).lost += u32::from(ran.outcome == RunOutcome::Stopped);
    }

    fn may_run(&self, class: ClassId, bounds: Bounds) -> TimeSpan {
        let p = self.classes.get(class.index()).map_or(0.0, |counts| counts.p);
        let range = bounds.max.as_nanos().saturating_sub(bounds.min.as_nanos());
        bounds.min + TimeSpan::from_nanos(range).scale(self.granted(p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::find_termination;

    const PAGE: ClassId = ClassId(1);
    const BOUNDS: Bounds = Bounds { min: TimeSpan::from_secs(1), max: TimeSpan::from_secs(9) };

    fn default() -> Loss {
        Loss::new(&find_termination("loss").unwrap().settings([]).unwrap())
    }

    fn at(loss: &mut Loss, second: u64) -> TimeSpan {
        loss.tick(Time::ZERO + TimeSpan::from_secs(second));
        loss.may_run(PAGE, BOUNDS)
    }

    /// Returns the threshold, in seconds, after an interval with 100 requests, of which `lost` were
    /// lost.
    fn after(lost: u32) -> f64 {
        let mut counted = default();
        (0..100).for_each(|_| counted.arrived(PAGE));
        (0..lost).for_each(|_| counted.lost(PAGE));
        assert_eq!(at(&mut counted, 9), BOUNDS.max, "the interval is not over");
        at(&mut counted, 10).as_secs_f64()
    }

    #[test]
    fn the_threshold_is_the_seeds_formula() {
        for (lost, expected) in [(0, 9.0), (5, 9.0), (10, 1.5), (15, 1.0), (80, 1.0)] {
            assert!((after(lost) - expected).abs() < 1e-6, "{lost} %: {}", after(lost));
        }
        // With α = 4 the threshold is (9/10)^4 of eight seconds, plus one second.
        assert!((after(6) - (1.0 + 8.0 * 0.6561)).abs() < 1e-6);
    }

    #[test]
    fn who_is_stopped_counts_and_who_left_does_not() {
        let mut loss = default();
        let ran = |outcome| Ran { class: PAGE, took: TimeSpan::from_secs(1), outcome };
        (0..10).for_each(|_| loss.arrived(PAGE));
        (0..10).for_each(|_| loss.ended(ran(RunOutcome::Cut)));
        assert_eq!(at(&mut loss, 10), BOUNDS.max);
        (0..10).for_each(|_| loss.arrived(PAGE));
        (0..2).for_each(|_| loss.ended(ran(RunOutcome::Stopped)));
        assert_eq!(at(&mut loss, 20), BOUNDS.min);
        assert_eq!(loss.may_run(ClassId(0), BOUNDS), BOUNDS.max, "another class");
        assert_eq!(at(&mut loss, 40), BOUNDS.max, "nobody came since");
    }

    #[test]
    fn a_crowd_that_leaves_does_not_hide_the_loss_of_those_who_stay() {
        let came = |second| Time::ZERO + TimeSpan::from_secs(second);
        let mut loss = default();
        (0..100).for_each(|_| loss.arrived(PAGE));
        (0..90).for_each(|_| loss.left(PAGE, came(1)));
        (0..2).for_each(|_| loss.lost(PAGE));
        assert_eq!(at(&mut loss, 10), BOUNDS.min, "two of ten");
        (0..100).for_each(|_| loss.arrived(PAGE));
        (0..90).for_each(|_| loss.left(PAGE, came(9)));
        (0..2).for_each(|_| loss.lost(PAGE));
        assert_eq!(at(&mut loss, 20), BOUNDS.max, "they had come before: two of a hundred");
    }
}
