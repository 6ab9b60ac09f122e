//! The default termination policy, which compares the requests that are about to be lost with
//! running ones that promise less.
//!
//! Source: bywash, docs/decisions/0017. A threshold has to guess at which load it will be needed. A
//! low one stops requests needlessly while slots are free, and a high one lets a few long requests
//! hold every slot. So this policy has no threshold. The engine asks it only when requests are
//! about to be lost. The engine then compares two promises: that of a second of service for the
//! waiting requests, and that of one more second for the running ones ([`Survival`]). If service
//! times have no memory, or if a request that has run for long is nearly done, a running request
//! promises no less, and none is stopped. The promise is the Gittins index of each request, with
//! stopping as the only alternative.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use super::{Ran, RunOutcome, Survival, Terminate};
use crate::request::Bounds;
use crate::request::ClassId;

/// The minimum time between two updates of the estimate of a class.
const EVERY: TimeSpan = TimeSpan::from_secs(1);
/// The minimum number of completed requests of a class for an estimate.
const KNOWN: u32 = 32;

/// The termination policy that compares promises. See the module documentation.
#[derive(Debug, Default)]
pub struct Marginal {
    classes: Vec<OfClass>,
    /// The time at which the estimate of any class was last updated.
    refreshed: Time,
}

#[derive(Debug, Default)]
struct OfClass {
    survival: Survival,
    done: u32,
    looked: Option<Time>,
}

impl Terminate for Marginal {
    fn ended(&mut self, ran: Ran) {
        let index = ran.class.index();
        if self.classes.len() <= index {
            self.classes.resize_with(index + 1, OfClass::default);
        }
        let done = ran.outcome == RunOutcome::Done;
        self.classes[index].survival.learn(ran.took, done);
        self.classes[index].done = self.classes[index].done.saturating_add(u32::from(done));
    }

    fn may_run(&self, _: ClassId, bounds: Bounds) -> TimeSpan {
        bounds.max
    }

    fn promise(&mut self, now: Time, class: ClassId, age: TimeSpan) -> Option<f64> {
        let of = self.classes.get_mut(class.index()).filter(|of| of.done >= KNOWN)?;
        // After the first estimate of each class, a call updates at most one. A request waits for
        // this decision, which may ask about 64 classes.
        let is_old = |at| now.since(at) >= EVERY && now > self.refreshed;
        if of.survival.is_stale() && of.looked.is_none_or(is_old) {
            self.refreshed = now;
            of.looked = Some(now);
            of.survival.refresh();
        }
        Some(of.survival.promise(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_estimate_at_a_time_is_brought_up_to_date() {
        let mut marginal = Marginal::default();
        let learn = |marginal: &mut Marginal, seconds| {
            for class in [ClassId(0), ClassId(1)] {
                let took = TimeSpan::from_secs(seconds);
                (0..50_000)
                    .for_each(|_| marginal.ended(Ran { class, took, outcome: RunOutcome::Done }));
            }
        };
        let quick = |marginal: &mut Marginal, second| {
            let now = Time::ZERO + TimeSpan::from_secs(second);
            [0, 1].map(|class| marginal.promise(now, ClassId(class), TimeSpan::ZERO).unwrap() > 0.5)
        };
        learn(&mut marginal, 1);
        assert_eq!(quick(&mut marginal, 1), [true, true], "there was none of either");
        learn(&mut marginal, 10);
        assert_eq!(quick(&mut marginal, 1), [true, true], "no second has passed");
        assert_eq!(quick(&mut marginal, 2), [false, true]);
        assert_eq!(quick(&mut marginal, 2), [false, true]);
        assert_eq!(quick(&mut marginal, 3), [false, false]);
    }

    #[test]
    fn a_class_of_which_too_little_is_known_promises_nothing() {
        let mut marginal = Marginal::default();
        let ran = |outcome| Ran { class: ClassId(3), took: TimeSpan::from_secs(1), outcome };
        (0..100).for_each(|_| marginal.ended(ran(RunOutcome::Stopped)));
        (0..31).for_each(|_| marginal.ended(ran(RunOutcome::Done)));
        assert_eq!(marginal.promise(Time::ZERO, ClassId(3), TimeSpan::ZERO), None);
        assert_eq!(marginal.promise(Time::ZERO, ClassId(9), TimeSpan::ZERO), None);
        marginal.ended(ran(RunOutcome::Done));
        assert!(marginal.promise(Time::ZERO, ClassId(3), TimeSpan::ZERO).is_some());
    }
}
