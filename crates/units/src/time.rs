//! A point in time on a monotonic clock.

use core::ops::{Add, Sub};

use crate::TimeSpan;

/// A point in time, in nanoseconds since its driver's clock was started.
///
/// The gateway's clock starts with the process, the simulator's with the run. A `Time` has no
/// meaning outside the driver that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The time at which the driver's clock was started.
    pub const ZERO: Self = Self(0);

    /// Creates the time that is `nanoseconds` after the start of the clock.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Returns the number of nanoseconds since the start of the clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the number of seconds since the start of the clock.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the duration from `earlier` to this time; zero if this time is not later.
    pub const fn since(self, earlier: Self) -> TimeSpan {
        TimeSpan::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<TimeSpan> for Time {
    type Output = Self;

    fn add(self, span: TimeSpan) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

impl Sub<TimeSpan> for Time {
    type Output = Self;

    fn sub(self, span: TimeSpan) -> Self {
        Self(self.0.saturating_sub(span.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_never_before_the_start_of_its_clock() {
        assert_eq!(Time::ZERO - TimeSpan::from_secs(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), TimeSpan::ZERO);
    }

    #[test]
    fn adding_and_taking_away_a_span_comes_back() {
        let noon = Time::from_nanos(1_000);
        assert_eq!((noon + TimeSpan::from_nanos(7)).since(noon), TimeSpan::from_nanos(7));
    }
}
