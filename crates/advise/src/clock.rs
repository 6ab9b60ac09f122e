//! The clock of a log. Servers write lines in the order in which requests end, so time advances. If
//! a server's clock was set, or a log was concatenated from several files, time jumps.
//!
//! A jump is accepted when eight consecutive requests agree with it. Until then these requests are
//! strays, which belong to no session and no minute. So one line with a wrong time ends no session
//! and makes no peak.
//!
//! The first line has no line before it to compare with. So the first lines are held until eight of
//! them agree, consecutive or not. The clock begins with their time.

use bywash_units::{Time, TimeSpan};

use crate::request::{Kept, Request};

/// The distance from the clock beyond which the time of a line is a stray.
const STRAY_DISTANCE: TimeSpan = TimeSpan::from_secs(3600);
/// The number of consecutive strays near each other after which the clock is set to their time.
const MIN_AGREEING_STRAYS: u32 = 8;

/// The maximum number of held lines. After this number, the clock starts even if too few lines
/// agree.
const MAX_HELD_LINES: usize = 64;

/// The first lines of a log, held until enough of them agree on the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    held: Vec<Kept>,
}

impl Opening {
    /// Holds one more request. Returns whether enough requests are held to set the clock.
    pub(crate) fn hold(&mut self, request: &Request<'_>) -> bool {
        self.held.push(request.kept());
        self.held.len() >= MAX_HELD_LINES
            || self.agreed().is_some_and(|(_, agree)| agree >= MIN_AGREEING_STRAYS as usize)
    }

    /// Returns the clock, set to the time on which most held requests agree, and all held requests.
    pub(crate) fn over(self) -> (Clock, Vec<Kept>) {
        let now = self.agreed().map(|(time, _)| time);
        (Clock { now, ..Clock::default() }, self.held)
    }

    fn agreed(&self) -> Option<(Time, usize)> {
        let ended: Vec<Time> = self.held.iter().map(|one| one.request().ended()).collect();
        agreed(&ended)
    }
}

/// Returns the element of `times` that has most other elements near it, and the number of elements
/// near it, including itself. Returns `None` if `times` is empty.
pub fn agreed(times: &[Time]) -> Option<(Time, usize)> {
    let near = |one: Time| times.iter().filter(|other| is_near(one, **other)).count();
    let all = times.iter().map(|one| (*one, near(*one)));
    all.reduce(|most, one| if one.1 > most.1 { one } else { most })
}

/// The clock of a log, with the number of its jumps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    now: Option<Time>,
    /// The time of the last stray, and the number of consecutive strays that agree with that time.
    other: Option<(Time, u32)>,
    /// The number of requests with an implausible time.
    pub(crate) strays: u64,
    /// The number of times that the clock went back by more than an hour.
    pub(crate) backward: u64,
    /// The number of times that the clock went forward by more than an hour.
    pub(crate) forward: u64,
}

/// The classification of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeClass {
    /// The time is near the clock, or it is an accepted jump forward.
    Usual,
    /// The time is an accepted jump back: a new, earlier time begins.
    Back,
    /// The time may be wrong, and is not accepted yet.
    Stray,
}

impl Clock {
    /// Compares the end of a request with the clock, and advances the clock if the time is
    /// accepted.
    pub(crate) fn tick(&mut self, ended: Time) -> TimeClass {
        let Some(now) = self.now else {
            self.now = Some(ended);
            return TimeClass::Usual;
        };
        if is_near(now, ended) {
            self.now = Some(now.max(ended));
            self.other = None;
            return TimeClass::Usual;
        }
        let agreed = match self.other {
            Some((other, agreed)) if is_near(other, ended) => agreed + 1,
            _ => 1,
        };
        if agreed < MIN_AGREEING_STRAYS {
            self.other = Some((ended, agreed));
            self.strays += 1;
            return TimeClass::Stray;
        }
        self.other = None;
        self.now = Some(ended);
        if ended < now {
            self.backward += 1;
            return TimeClass::Back;
        }
        self.forward += 1;
        TimeClass::Usual
    }

    /// Returns the latest accepted time, or zero before the first request.
    pub(crate) fn now(&self) -> Time {
        self.now.unwrap_or(Time::ZERO)
    }
}

/// Returns whether two times differ by at most an hour, so that they belong together.
pub fn is_near(a: Time, b: Time) -> bool {
    a.since(b).max(b.since(a)) <= STRAY_DISTANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(hours * 3600)
    }

    #[test]
    fn one_wrong_line_moves_nothing() {
        let mut clock = Clock::default();
        assert_eq!(clock.tick(at(100)), TimeClass::Usual);
        for wrong in [at(9000), at(1), at(9000)] {
            assert_eq!(clock.tick(wrong), TimeClass::Stray);
        }
        assert_eq!(clock.tick(at(100)), TimeClass::Usual);
        assert_eq!((clock.now(), clock.strays, clock.forward), (at(100), 3, 0));
    }

    #[test]
    fn most_lines_say_what_time_it_is_and_of_two_that_disagree_the_first() {
        assert_eq!(agreed(&[]), None);
        assert_eq!(agreed(&[at(9000), at(100), at(1), at(101)]), Some((at(100), 2)));
        assert_eq!(agreed(&[at(9000), at(100)]), Some((at(9000), 1)));
    }

    #[test]
    fn a_night_without_requests_and_a_clock_that_was_set_back_are_believed() {
        let mut clock = Clock::default();
        let mut after = |hours| (0..9).map(|_| clock.tick(at(hours))).collect::<Vec<_>>();
        assert_eq!(after(10), [TimeClass::Usual; 9]);
        assert_eq!(after(20)[6..], [TimeClass::Stray, TimeClass::Usual, TimeClass::Usual]);
        assert_eq!(after(5)[6..], [TimeClass::Stray, TimeClass::Back, TimeClass::Usual]);
        assert_eq!((clock.strays, clock.backward, clock.forward), (14, 1, 1));
    }
}
