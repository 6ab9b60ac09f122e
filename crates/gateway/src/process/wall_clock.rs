//! The clock for operators' decisions. If the system's clock is set back, no decision lasts longer.
//!
//! Suppose that a decision ends at a time of the wall clock, and that the wall clock is set back by
//! a day. The decision would then last a day longer. So this clock advances with a monotonic clock.
//! It only jumps forward, to the wall clock, when the wall clock is ahead. Every decision is an
//! exception to the configuration file, so it is better for it to end early than late. Saved times
//! may come from a wrong clock. They are bounded when they are read (`began_by`).

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bywash_control::Timestamp;

static CLOCK: Mutex<Option<Clock>> = Mutex::new(None);

/// A reading of this clock, and the monotonic instant at which it was taken.
#[derive(Clone, Copy)]
struct Clock {
    shown: Timestamp,
    at: Instant,
}

impl Clock {
    /// Returns the later of two times: `shown`, which the wall clock shows now, and the last
    /// reading plus the monotonic time since. `at` is the present instant.
    fn now(&mut self, shown: Timestamp, at: Instant) -> Timestamp {
        let steady = self.shown.checked_add(at.saturating_duration_since(self.at));
        *self = Self { shown: steady.map_or(shown, |steady| steady.max(shown)), at };
        self.shown
    }
}

/// Returns the current time of this clock, in whole milliseconds.
pub(crate) fn now() -> Timestamp {
    let (shown, at) = (Timestamp::now(), Instant::now());
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let now = clock.get_or_insert(Clock { shown, at }).now(shown, at);
    // The time is cut to milliseconds, because operators see no finer time.
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// Returns the time of the wall clock in milliseconds since 1970, for log entries. No decision
/// depends on this time.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of the wall clock in seconds since 1970.
pub(crate) fn unix_s() -> i64 {
    i64::try_from(unix_ms() / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_jumps_forward_and_goes_on_from_there_at_its_pace() {
        let wall_time = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut clock = Clock { shown: wall_time(0), at: began };
        assert_eq!(clock.now(wall_time(60), after(60)), wall_time(60));
        assert_eq!(clock.now(wall_time(-86_400), after(70)), wall_time(70), "it was set back");
        assert_eq!(
            clock.now(wall_time(86_400), after(80)),
            wall_time(86_400),
            "it was set forward"
        );
        assert_eq!(clock.now(wall_time(90), after(90)), wall_time(86_410), "and put right");
        assert_eq!(clock.now(wall_time(100), after(100)), wall_time(86_420));
    }
}
