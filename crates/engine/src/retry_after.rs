//! The time after which refused clients may retry (`Retry-After`).
//!
//! Source: `policies.md` §10. The doubling and the linear return are those of Kubernetes' API
//! priority and fairness. There are two estimates, and the longer one counts:
//!
//! - *drain*: the time in which the requests that wait now will have been served, at the present
//!   pace;
//! - *pressure*: a pause, one second at first. The pause doubles, up to 32 s, if more requests were
//!   refused than served during it: then retries were refused again. It falls by one second if
//!   fewer were refused.
//!
//! The driver varies the result at random by up to half in both directions. Otherwise clients that
//! were refused together would retry together.

use bywash_units::{Time, TimeSpan};

/// The minimum and the maximum time after which a refused client may retry.
const RANGE: (TimeSpan, TimeSpan) = (TimeSpan::from_secs(1), TimeSpan::from_secs(32));

/// The present pause, with the number of refused and of served requests in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryAfter {
    pressure: TimeSpan,
    since: Time,
    refused: u32,
    served: u32,
}

impl RetryAfter {
    /// The state without any refusal: a pause of one second.
    pub(crate) const CALM: Self =
        Self { pressure: RANGE.0, since: Time::ZERO, refused: 0, served: 0 };

    /// Counts a served request.
    pub(crate) fn served(&mut self, now: Time) {
        self.advance(now);
        self.served = self.served.saturating_add(1);
    }

    /// Counts a refused request, and returns the time after which its client may retry. `drain` is
    /// the time in which the requests that wait now will have been served. `is_load` says whether
    /// the request is refused because of overload. Only such refusals lengthen the pause.
    pub(crate) fn refused(&mut self, now: Time, drain: TimeSpan, is_load: bool) -> TimeSpan {
        self.advance(now);
        self.refused = self.refused.saturating_add(u32::from(is_load));
        drain.max(self.pressure).clamp_to(RANGE.0, RANGE.1)
    }

    /// Ends the pause if its time has passed, and sets the length of the next one.
    fn advance(&mut self, now: Time) {
        let passed = now.since(self.since);
        if passed < self.pressure {
            return;
        }
        // A second pause that has passed without any event was a pause without refusals.
        self.pressure = if self.refused > self.served && passed < self.pressure * 2 {
            (self.pressure * 2).clamp_to(RANGE.0, RANGE.1)
        } else {
            // The pause falls by a second for every pause that has passed, with or without events.
            let pauses = passed.as_nanos() / self.pressure.as_nanos().max(1);
            let less = TimeSpan::from_secs(pauses.min(RANGE.1.as_nanos() / 1_000_000_000));
            TimeSpan::from_nanos(self.pressure.as_nanos().saturating_sub(less.as_nanos()))
                .clamp_to(RANGE.0, RANGE.1)
        };
        (self.since, self.refused, self.served) = (now, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_millis(milliseconds)
    }

    /// Reports refused and served requests in every second from `from` to `to`. `refused` and
    /// `served` are their numbers per second. Returns the resulting `Retry-After`.
    fn play(after: &mut RetryAfter, from: u64, to: u64, refused: u64, served: u64) -> TimeSpan {
        let mut last = TimeSpan::ZERO;
        for second in from..to {
            for i in 0..refused {
                last = after.refused(at(second * 1000 + i), TimeSpan::ZERO, true);
            }
            (0..served).for_each(|i| after.served(at(second * 1000 + 500 + i)));
        }
        last
    }

    #[test]
    fn it_doubles_while_more_are_refused_than_served_and_stops_at_32_seconds() {
        let mut after = RetryAfter::CALM;
        assert_eq!(play(&mut after, 0, 1, 5, 2), TimeSpan::from_secs(1));
        assert_eq!(play(&mut after, 1, 2, 5, 2), TimeSpan::from_secs(2));
        assert_eq!(play(&mut after, 2, 4, 5, 2), TimeSpan::from_secs(4));
        assert_eq!(play(&mut after, 4, 200, 5, 2), TimeSpan::from_secs(32));
    }

    #[test]
    fn it_comes_down_by_a_second_a_pause() {
        let mut after = RetryAfter::CALM;
        play(&mut after, 0, 200, 5, 2);
        let calm = play(&mut after, 200, 300, 1, 9);
        assert!((TimeSpan::from_secs(27)..=TimeSpan::from_secs(29)).contains(&calm), "{calm}");
        assert_eq!(play(&mut after, 3000, 3001, 1, 9), TimeSpan::from_secs(1));
    }

    #[test]
    fn a_long_queue_asks_for_as_long_as_it_takes_to_drain() {
        let mut after = RetryAfter::CALM;
        assert_eq!(after.refused(at(0), TimeSpan::from_secs(9), true), TimeSpan::from_secs(9));
        assert_eq!(after.refused(at(0), TimeSpan::from_secs(900), true), TimeSpan::from_secs(32));
    }

    #[test]
    fn an_hour_in_which_nobody_came_is_calm() {
        let mut after = RetryAfter::CALM;
        play(&mut after, 0, 200, 5, 2);
        assert_eq!(play(&mut after, 3800, 3801, 1, 0), TimeSpan::from_secs(1));
    }

    #[test]
    fn who_asks_for_more_than_one_may_presses_nobody_else() {
        let mut after = RetryAfter::CALM;
        for second in 0..100 {
            (0..50).for_each(|i| {
                after.refused(at(second * 1000 + i), TimeSpan::ZERO, false);
            });
            after.served(at(second * 1000 + 900));
        }
        assert_eq!(after.refused(at(100_000), TimeSpan::ZERO, true), TimeSpan::from_secs(1));
    }
}
