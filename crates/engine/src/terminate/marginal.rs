//! Whoever is about to be lost, or whoever runs and promises less.
//!
//! Source: bywash, docs/decisions/0017. A threshold has to guess at which load it will be needed: one that is
//! low while there is room stops requests for nothing, one that is high lets a few long ones hold every slot.
//! So this one has none. The engine asks it only when requests are about to be lost: what a second of service
//! promises to those that wait, and what a second more promises to those that run ([`Survival`]). Where service
//! times have no memory, or where who has run for long is nearly done, that is no less, and nobody is
//! stopped. What is asked for is Gittins' index of each, with the stop as the only other choice.

use alloc::vec::Vec;

use bywash_units::{Span, Time};

use super::{Bounds, Fate, Ran, Survival, Terminate};
use crate::request::ClassId;

/// How often an estimate is brought up to date.
const EVERY: Span = Span::from_secs(1);
/// Requests that must have been done before an estimate is one.
const KNOWN: u32 = 32;

/// The comparison.
#[derive(Debug, Default)]
pub struct Marginal {
    classes: Vec<OfClass>,
    /// When an estimate was last brought up to date.
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
        let done = ran.fate == Fate::Done;
        self.classes[index].survival.learn(ran.took, done);
        self.classes[index].done = self.classes[index].done.saturating_add(u32::from(done));
    }

    fn may_run(&self, _: ClassId, bounds: Bounds) -> Span {
        bounds.max
    }

    fn promise(&mut self, now: Time, class: ClassId, age: Span) -> Option<f64> {
        let of = self.classes.get_mut(class.index()).filter(|of| of.done >= KNOWN)?;
        // One at a time, once there is one of each: somebody waits for this decision, and it may ask of 64.
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
                let took = Span::from_secs(seconds);
                (0..50_000).for_each(|_| marginal.ended(Ran { class, took, fate: Fate::Done }));
            }
        };
        let quick = |marginal: &mut Marginal, second| {
            let now = Time::ZERO + Span::from_secs(second);
            [0, 1].map(|class| marginal.promise(now, ClassId(class), Span::ZERO).unwrap() > 0.5)
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
        let ran = |fate| Ran { class: ClassId(3), took: Span::from_secs(1), fate };
        (0..100).for_each(|_| marginal.ended(ran(Fate::Stopped)));
        (0..31).for_each(|_| marginal.ended(ran(Fate::Done)));
        assert_eq!(marginal.promise(Time::ZERO, ClassId(3), Span::ZERO), None);
        assert_eq!(marginal.promise(Time::ZERO, ClassId(9), Span::ZERO), None);
        marginal.ended(ran(Fate::Done));
        assert!(marginal.promise(Time::ZERO, ClassId(3), Span::ZERO).is_some());
    }
}
