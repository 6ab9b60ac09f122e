//! A duration, and its notation as text.

use alloc::string::String;
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul};
use core::str::FromStr;

/// A duration in nanoseconds. It is never negative, and arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan(u64);

/// The units in which a duration may be written, with their nanoseconds, smallest first.
const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl TimeSpan {
    /// The duration of zero.
    pub const ZERO: Self = Self(0);
    /// The longest duration. It stands for "without limit".
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a duration from a number of nanoseconds.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Creates a duration from a number of microseconds.
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds.saturating_mul(1_000))
    }

    /// Creates a duration from a number of milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// Creates a duration from a number of seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Creates a duration from a number of seconds. A negative number and NaN give zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates and converts NaN to zero.
        Self((seconds * 1e9) as u64)
    }

    /// Returns the duration in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the duration in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the same duration in the standard library's type.
    pub const fn to_std(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0)
    }

    /// Returns the duration multiplied by `factor`. A negative factor gives zero.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }

    /// Returns the nearest duration from `low` to `high`; `low` if `low` is above `high`.
    #[must_use]
    pub fn clamp_to(self, low: Self, high: Self) -> Self {
        self.min(high).max(low)
    }
}

impl From<core::time::Duration> for TimeSpan {
    fn from(duration: core::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for TimeSpan {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for TimeSpan {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for TimeSpan {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Div<u64> for TimeSpan {
    type Output = Self;

    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts.max(1))
    }
}

/// The error that a text is not a duration; it contains the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSpanError(String);

impl fmt::Display for ParseSpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a span: write a number and a unit, like \"250ms\", \"20s\", \"5m\"",
            self.0
        )
    }
}

impl core::error::Error for ParseSpanError {}

impl FromStr for TimeSpan {
    type Err = ParseSpanError;

    /// Parses a number with a unit, such as `250ms`, `1.5s`, `20s`, `5m` or `2h`. A number without
    /// a unit is an error, because a reader could not distinguish seconds from milliseconds.
    fn from_str(text: &str) -> Result<Self, ParseSpanError> {
        let fail = || ParseSpanError(text.chars().take(40).collect());
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(fail)?;
        let (number, unit) = text.split_at(split);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(fail)?;
        let number: f64 = number.parse().map_err(|_| fail())?;
        // The product is rounded, because it may be slightly less than a whole number, as for
        // `1.001s`.
        Ok(Self((number * *nanos as f64 + 0.5) as u64))
    }
}

impl fmt::Display for TimeSpan {
    /// Writes a short form that is exact enough for people: `250ms`, `1.5s`, `20s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, nanos) =
            UNITS[..4].iter().rev().find(|(_, nanos)| self.0 >= *nanos).unwrap_or(&UNITS[3]);
        write!(f, "{}{name}", self.0 as f64 / *nanos as f64)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_span_reads_back_as_it_was_written() {
        for text in ["250ms", "1.001s", "1.5s", "20s", "7us", "3ns", "0s"] {
            assert_eq!(text.parse::<TimeSpan>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn minutes_and_hours_are_read_in_seconds() {
        assert_eq!("5m".parse::<TimeSpan>().unwrap(), TimeSpan::from_secs(300));
        assert_eq!("2h".parse::<TimeSpan>().unwrap(), TimeSpan::from_secs(7200));
    }

    #[test]
    fn a_number_without_a_unit_and_other_nonsense_is_refused() {
        for text in ["", "20", "s", "-1s", "1.2.3s", "5 parsecs", "nan s", "ms5"] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text:?} was taken for a span");
        }
    }

    #[test]
    fn nothing_overflows() {
        assert_eq!(TimeSpan::MAX + TimeSpan::from_secs(1), TimeSpan::MAX);
        assert_eq!(TimeSpan::from_secs_f64(f64::NAN), TimeSpan::ZERO);
        assert_eq!(TimeSpan::from_secs(1).scale(-2.0), TimeSpan::ZERO);
        assert_eq!("99999999999999999999h".parse::<TimeSpan>().unwrap(), TimeSpan::MAX);
    }
}
