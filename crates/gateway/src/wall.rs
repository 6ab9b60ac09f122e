//! What time it is, for what operators decide: no clock that is set makes anything last longer.
//!
//! What ends at a moment of the wall clock would hold for a day more if that is set back by a day. So time goes on by a clock
//! that nobody sets, and jumps where the wall clock is ahead: forward only. What is decided is an exception, and ends early
//! rather than late. What was kept while the clock was wrong is bounded when it is read (`began_by`).

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bywash_control::Timestamp;

static CLOCK: Mutex<Option<Clock>> = Mutex::new(None);

/// A moment of the wall clock, and when that was.
#[derive(Clone, Copy)]
struct Clock {
    shown: Timestamp,
    at: Instant,
}

impl Clock {
    /// The later of what the wall clock shows and what it would show had nobody set it back.
    fn now(&mut self, shown: Timestamp, at: Instant) -> Timestamp {
        let steady = self.shown.checked_add(at.saturating_duration_since(self.at));
        *self = Self { shown: steady.map_or(shown, |steady| steady.max(shown)), at };
        self.shown
    }
}

/// What time it is.
pub(crate) fn now() -> Timestamp {
    let (shown, at) = (Timestamp::now(), Instant::now());
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let now = clock.get_or_insert(Clock { shown, at }).now(shown, at);
    // Nobody reads more digits.
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_jumps_forward_and_goes_on_from_there_at_its_pace() {
        let wall = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut clock = Clock { shown: wall(0), at: began };
        assert_eq!(clock.now(wall(60), after(60)), wall(60));
        assert_eq!(clock.now(wall(-86_400), after(70)), wall(70), "it was set back");
        assert_eq!(clock.now(wall(86_400), after(80)), wall(86_400), "it was set forward");
        assert_eq!(clock.now(wall(90), after(90)), wall(86_410), "and put right");
        assert_eq!(clock.now(wall(100), after(100)), wall(86_420));
    }
}
