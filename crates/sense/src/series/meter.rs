//! Computes the use of a resource between two readings, or the reason why the use is unknown.
//!
//! A meter never guesses. A window whose use is unknown is left out when the costs of requests are
//! estimated, so it costs one window. A guessed use would make every result wrong that depends on
//! it. Therefore:
//! - A counter that fell has restarted, and the use between the two readings is unknown. Other
//!   tools take the value since the restart instead.
//! - Two readings that are too far apart show how much was used, but not when.
//! - A use that is impossible for any machine is rejected.
//!
//! For a gauge, nothing is known between two readings. The mean of both, multiplied by the time, is
//! right on average if the times of the readings are independent of the gauge.

use bywash_units::{Time, TimeSpan};

use super::resource::Value;

/// The use of a resource between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    /// The time of the earlier reading.
    pub from: Time,
    /// The time of the later reading.
    pub to: Time,
    /// The amount that was used, in the resource's unit.
    pub used: f64,
}

/// The reason why the use since the preceding reading is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The reading is the first one, so there is no preceding reading.
    First,
    /// The preceding reading is longer ago than the meter's limit.
    Gap,
    /// The counter fell: it has restarted with its process or machine.
    Reset,
    /// The reading is not later than the preceding one, because the clock was set.
    Clock,
    /// The value is negative, infinite or not a number.
    NoNumber,
    /// The use would exceed the maximum that is possible for the resource.
    Leap,
}

/// A meter that computes the use of one resource from its successive readings. It keeps the last
/// reading.
#[derive(Clone, Debug)]
pub struct Meter {
    longest: TimeSpan,
    last: Option<(Time, Value)>,
}

/// The maximum use in an interval, as a multiple of the maximum that the resource allows. A use
/// above it is rejected. A smaller excess is possible, because the interval appears too short if a
/// late reading is followed by one on time.
const MAX_OVERUSE_FACTOR: f64 = 4.0;
/// The tolerance for the ticks of a counter, in seconds of use at the maximum rate. A use may
/// exceed [`MAX_OVERUSE_FACTOR`] by this much, because the use in a short interval may appear too
/// high.
const TICK_TOLERANCE: f64 = 0.1;

impl Meter {
    /// Creates a meter that treats readings further apart than `longest` as a gap.
    pub const fn new(longest: TimeSpan) -> Self {
        Self { longest, last: None }
    }

    /// Returns the use between the preceding reading and this one. `most` is the maximum use per
    /// second, in the resource's unit. This reading takes the place of the preceding one, even
    /// after an error. Only a value that is negative or not finite is ignored.
    ///
    /// # Errors
    /// Returns the reason why the use is unknown.
    pub fn read(&mut self, at: Time, value: Value, most: f64) -> Result<Used, Unread> {
        // Ignore this reading: the next one may still be close enough to the preceding one.
        if !(value.get().is_finite() && value.get() >= 0.0) {
            return Err(Unread::NoNumber);
        }
        let (from, before) = self.last.replace((at, value)).ok_or(Unread::First)?;
        let elapsed = at.since(from);
        if elapsed == TimeSpan::ZERO {
            return Err(Unread::Clock);
        }
        if elapsed > self.longest {
            return Err(Unread::Gap);
        }
        let seconds = elapsed.as_secs_f64();
        let used = match (before, value) {
            (Value::Counter(before), Value::Counter(now)) if now >= before => now - before,
            (Value::Gauge(before), Value::Gauge(now)) => (before / 2.0 + now / 2.0) * seconds,
            (Value::Counter(_), Value::Counter(_) | Value::Gauge(_))
            | (Value::Gauge(_), Value::Counter(_)) => return Err(Unread::Reset),
        };
        if used > most * (MAX_OVERUSE_FACTOR * seconds + TICK_TOLERANCE) {
            return Err(Unread::Leap);
        }
        Ok(Used { from, to: at, used })
    }

    /// Returns whether the resource has been read since the time `then`.
    pub(super) fn is_read_since(&self, then: Time) -> bool {
        self.last.is_some_and(|(at, _)| at >= then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: TimeSpan = TimeSpan::from_secs(1);

    fn at(seconds: u64) -> Time {
        Time::ZERO + SECOND * seconds
    }

    fn meter() -> Meter {
        Meter::new(TimeSpan::from_secs(3))
    }

    #[test]
    fn a_counter_says_what_was_used_between() {
        let mut meter = meter();
        assert_eq!(meter.read(at(1), Value::Counter(5.0), 2.0), Err(Unread::First));
        let used = Used { from: at(1), to: at(3), used: 1.5 };
        assert_eq!(meter.read(at(3), Value::Counter(6.5), 2.0), Ok(used));
        let used = Used { from: at(3), to: at(4), used: 0.0 };
        assert_eq!(meter.read(at(4), Value::Counter(6.5), 2.0), Ok(used));
    }

    #[test]
    fn a_gauge_says_the_mean_of_both_ends() {
        let mut meter = meter();
        assert_eq!(meter.read(at(1), Value::Gauge(2.0), 100.0), Err(Unread::First));
        let used = Used { from: at(1), to: at(3), used: 10.0 };
        assert_eq!(meter.read(at(3), Value::Gauge(8.0), 100.0), Ok(used));
    }

    #[test]
    fn a_missing_reading_is_a_longer_window_and_too_many_are_a_gap() {
        let mut meter = meter();
        assert!(meter.read(at(0), Value::Counter(0.0), 1.0).is_err());
        assert!(meter.read(at(3), Value::Counter(1.0), 1.0).is_ok());
        assert_eq!(meter.read(at(7), Value::Counter(2.0), 1.0), Err(Unread::Gap));
        let used = Used { from: at(7), to: at(8), used: 0.5 };
        assert_eq!(meter.read(at(8), Value::Counter(2.5), 1.0), Ok(used));
    }

    #[test]
    fn a_counter_that_begins_anew_says_nothing_of_the_time_before() {
        let mut meter = meter();
        assert!(meter.read(at(0), Value::Counter(50.0), 1.0).is_err());
        assert_eq!(meter.read(at(1), Value::Counter(0.5), 1.0), Err(Unread::Reset));
        let used = Used { from: at(1), to: at(2), used: 0.25 };
        assert_eq!(meter.read(at(2), Value::Counter(0.75), 1.0), Ok(used));
        assert_eq!(meter.read(at(3), Value::Gauge(0.75), 1.0), Err(Unread::Reset));
    }

    #[test]
    fn a_clock_that_was_set_says_nothing_and_is_then_believed() {
        let mut meter = meter();
        assert!(meter.read(at(100), Value::Counter(1.0), 1.0).is_err());
        assert_eq!(meter.read(at(100), Value::Counter(1.5), 1.0), Err(Unread::Clock));
        assert_eq!(meter.read(at(40), Value::Counter(2.0), 1.0), Err(Unread::Clock));
        let used = Used { from: at(40), to: at(41), used: 0.5 };
        assert_eq!(meter.read(at(41), Value::Counter(2.5), 1.0), Ok(used));
        assert_eq!(meter.read(at(4000), Value::Counter(3.0), 1.0), Err(Unread::Gap));
    }

    #[test]
    fn what_is_no_number_is_no_reading() {
        let mut meter = meter();
        assert!(meter.read(at(0), Value::Counter(1.0), 1.0).is_err());
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert_eq!(meter.read(at(1), Value::Counter(value), 1.0), Err(Unread::NoNumber));
            assert_eq!(meter.read(at(1), Value::Gauge(value), 1.0), Err(Unread::NoNumber));
        }
        let used = Used { from: at(0), to: at(2), used: 1.0 };
        assert_eq!(meter.read(at(2), Value::Counter(2.0), 1.0), Ok(used));
    }

    #[test]
    fn more_than_there_is_was_not_used() {
        let mut meter = meter();
        assert!(meter.read(at(0), Value::Counter(0.0), 2.0).is_err());
        assert!(meter.read(at(1), Value::Counter(2.2), 2.0).is_ok(), "ticks");
        assert_eq!(meter.read(at(2), Value::Counter(1e18), 2.0), Err(Unread::Leap));
        assert_eq!(meter.read(at(3), Value::Counter(1e18), 2.0).unwrap().used.to_bits(), 0);
        let most = Value::Gauge(f64::MAX);
        assert_eq!(meter.read(at(4), most, 2.0), Err(Unread::Reset));
        assert_eq!(meter.read(at(5), most, 2.0), Err(Unread::Leap), "and nothing overflows");
    }
}
