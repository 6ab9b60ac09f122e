//! The lift of entry signals: how much likelier a session that begins with them is to end in an
//! order.
//!
//! Source: `policies.md` §1 («with an entry signal multiply the entry index by p/p̄») and the bound
//! in research on what a signal is worth. Every combination of signals is counted separately,
//! because signals are correlated (a visitor who is logged in has a cart). A rarely seen
//! combination is assumed to order as often as the average. That assumption weighs as much as five
//! orders.
//!
//! Any client can send a cookie that looks like a signal. Then sessions with the signal order less
//! often, and its measured lift falls.

use crate::request::Signals;

/// The counts of sessions and of those that ordered, by the combination of signals that they showed
/// when they began. Older sessions count less.
#[derive(Clone, Debug)]
pub struct Lift {
    sessions: [f64; Signals::MOST],
    ordered: [f64; Signals::MOST],
}

/// The weight, in orders, of the assumption that all sessions order equally often.
const PRIOR_ORDERS: f64 = 5.0;
/// The maximum lift. The minimum lift is 1/`MOST`.
const MOST: f64 = 100.0;
/// The upper bound of any restored count.
const MOST_COUNT: f64 = 1e12;

impl Lift {
    /// The counts without any observation.
    pub const NONE: Self = Self { sessions: [0.0; Signals::MOST], ordered: [0.0; Signals::MOST] };

    /// Notes that a session has begun with these signals.
    pub const fn began(&mut self, signals: Signals) {
        self.sessions[signals.index()] += 1.0;
    }

    /// Notes that a session that began with these signals has made its first order.
    pub const fn ordered(&mut self, signals: Signals) {
        self.ordered[signals.index()] += 1.0;
    }

    /// Restores counts that [`Lift::counts`] returned. Invalid counts are ignored.
    pub fn restore(&mut self, signals: Signals, sessions: f64, ordered: f64) {
        let is_possible = (0.0..=MOST_COUNT).contains(&sessions);
        if is_possible && (0.0..=sessions).contains(&ordered) {
            self.sessions[signals.index()] = sessions;
            self.ordered[signals.index()] = ordered;
        }
    }

    /// Multiplies all counts by `factor`.
    pub fn fade(&mut self, factor: f64) {
        for count in self.sessions.iter_mut().chain(&mut self.ordered) {
            *count *= factor;
        }
    }

    /// Adds the counts of `other`, each multiplied by `factor`.
    pub fn add(&mut self, other: &Self, factor: f64) {
        let theirs = other.sessions.iter().chain(&other.ordered);
        for (count, their) in self.sessions.iter_mut().chain(&mut self.ordered).zip(theirs) {
            *count += their * factor;
        }
    }

    /// Returns the share, 0 to 1, of all sessions that order.
    pub fn mean(&self) -> f64 {
        self.ordered.iter().sum::<f64>() / self.sessions.iter().sum::<f64>().max(1.0)
    }

    /// Returns the number of sessions that began with these signals, and the number of them that
    /// ordered. Older sessions count less.
    pub const fn counts(&self, signals: Signals) -> (f64, f64) {
        (self.sessions[signals.index()], self.ordered[signals.index()])
    }

    /// Returns the lift of these signals: the share of the sessions with them that order, divided
    /// by the share of all sessions that order.
    pub fn of(&self, signals: Signals) -> f64 {
        let mean = self.mean();
        if mean <= 0.0 {
            return 1.0;
        }
        let (sessions, ordered) = self.counts(signals);
        let rate = (ordered + PRIOR_ORDERS) / (sessions + PRIOR_ORDERS / mean);
        possible(rate / mean)
    }
}

/// Returns the valid lift nearest to a number; 1 for an infinite number or NaN.
pub(super) fn possible(lift: f64) -> f64 {
    if lift.is_finite() { lift.clamp(1.0 / MOST, MOST) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CART: Signals = Signals::NONE.with(0);

    /// Returns the lift after 10,000 sessions: 1,000 with a cart, of which 100 order, and 9,000
    /// without, of which 90 order.
    fn seen() -> Lift {
        let mut lift = Lift::NONE;
        for i in 0..10_000 {
            let signals = if i % 10 == 0 { CART } else { Signals::NONE };
            lift.began(signals);
            if i % 100 == i32::from(i % 10 != 0) {
                lift.ordered(signals);
            }
        }
        lift
    }

    #[test]
    fn a_lift_is_the_ratio_of_two_probabilities() {
        let lift = seen();
        assert!((lift.mean() - 0.02).abs() < 0.002, "{}", lift.mean());
        assert!((4.0..6.0).contains(&lift.of(CART)), "{}", lift.of(CART));
        assert!((0.4..0.7).contains(&lift.of(Signals::NONE)), "{}", lift.of(Signals::NONE));
    }

    #[test]
    fn what_was_never_seen_says_nothing() {
        assert!((seen().of(Signals::NONE.with(3)) - 1.0).abs() < 1e-9);
        assert!((Lift::NONE.of(CART) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_signal_that_many_pretend_loses_its_meaning() {
        let mut lift = seen();
        for _ in 0..100_000 {
            lift.began(CART);
        }
        assert!(lift.of(CART) < lift.of(Signals::NONE));
    }
}
