//! Shares, rates and utilities.

use core::fmt;

/// A share of a whole, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    /// The share 0: nothing.
    pub const NONE: Self = Self(0.0);
    /// The share 1: the whole.
    pub const ALL: Self = Self(1.0);

    /// Creates the valid share nearest to `value`. NaN gives `NONE`.
    pub const fn new(value: f64) -> Self {
        if value.is_nan() { Self::NONE } else { Self(value.clamp(0.0, 1.0)) }
    }

    /// Returns the share as a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.0 * 100.0)
    }
}

/// A rate: a number of events per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// Creates a rate from a number of events per second. A negative number and NaN give zero.
    pub fn per_second(value: f64) -> Self {
        Self(if value > 0.0 { value } else { 0.0 })
    }

    /// Returns the number of events per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The worth of one request of a class: the probability that its session ends in revenue, times
/// that revenue. The number has no unit: only ratios between utilities of one configuration have a
/// meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Utility(f64);

impl Utility {
    /// Creates a utility. A negative or infinite value and NaN give zero.
    pub fn new(value: f64) -> Self {
        Self(if value.is_finite() && value > 0.0 { value } else { 0.0 })
    }

    /// Returns the utility as a number without a unit.
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_stays_between_nothing_and_all() {
        assert_eq!(Ratio::new(-3.0), Ratio::NONE);
        assert_eq!(Ratio::new(7.0), Ratio::ALL);
        assert_eq!(Ratio::new(f64::NAN), Ratio::NONE);
    }

    #[test]
    fn nonsense_is_no_rate_and_no_utility() {
        assert_eq!(Rate::per_second(f64::NAN).get().to_bits(), 0.0_f64.to_bits());
        assert_eq!(Utility::new(f64::INFINITY), Utility::new(0.0));
    }
}
