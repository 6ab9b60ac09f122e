//! The mean latency of rounds of requests, for the concurrency policies that use it.
//!
//! Source: Netflix concurrency-limits, `WindowedLimit` and `ImmutableAverageSampleWindow`. A round
//! lasts for a minimum time. It ends with the first answer after that time, if it has at least ten
//! answers. This implementation differs in one point: it excludes no answer for being quick,
//! because its clock is not that of a virtual machine.

use bywash_units::{Time, TimeSpan};

use super::{Completion, Ended, Load};

/// The minimum number of answers in a round.
const LEAST: u32 = 10;

/// The present round, with its answers and requests so far.
#[derive(Debug)]
pub(super) struct Rounds {
    length: TimeSpan,
    began: Option<Time>,
    answers: u32,
    took: TimeSpan,
    most_running: u32,
    dropped: bool,
}

/// The results of a complete round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// The mean latency of the answers, in seconds; above zero.
    pub(super) latency: f64,
    /// The maximum number of requests that ran at once during the round.
    pub(super) running: u32,
    /// Whether a request timed out, which counts as dropped.
    pub(super) dropped: bool,
}

impl Rounds {
    /// Creates rounds that last for at least `length` each.
    pub(super) const fn new(length: TimeSpan) -> Self {
        Self {
            length,
            began: None,
            answers: 0,
            took: TimeSpan::ZERO,
            most_running: 0,
            dropped: false,
        }
    }

    /// Counts a request that has ended. Returns the results of the round if it is complete with
    /// this request.
    pub(super) fn ended(&mut self, now: Time, load: Load, ended: Ended) -> Option<Round> {
        let began = *self.began.get_or_insert(now);
        self.most_running = self.most_running.max(load.running);
        match ended.completion {
            Completion::Answered => {
                self.answers += 1;
                self.took += ended.took;
            }
            Completion::TimedOut => {
                self.answers += 1;
                self.took += ended.took;
                self.dropped = true;
            }
            Completion::Left | Completion::Void => return None,
        }
        if self.answers < LEAST || now.since(began) < self.length {
            return None;
        }
        let round = Round {
            latency: (self.took.as_secs_f64() / f64::from(self.answers)).max(1e-9),
            running: self.most_running,
            dropped: self.dropped,
        };
        *self = Self { began: Some(now), ..Self::new(self.length) };
        Some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ClassId;

    const LOAD: Load = Load { running: 3, is_full: true };

    fn answer(took: u64) -> Ended {
        Ended {
            class: ClassId(0),
            took: TimeSpan::from_millis(took),
            completion: Completion::Answered,
        }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeSpan::from_millis(millis)
    }

    #[test]
    fn a_round_is_over_when_it_has_its_time_and_ten_answers() {
        let mut rounds = Rounds::new(TimeSpan::from_secs(1));
        for i in 0..9 {
            assert_eq!(rounds.ended(at(i * 200), LOAD, answer(100)), None, "{i}");
        }
        let round = rounds.ended(at(1_800), LOAD, answer(200)).expect("ten answers in 1.8 s");
        assert!((round.latency - 0.11).abs() < 1e-9, "{round:?}");
        assert_eq!((round.running, round.dropped), (3, false));
        assert_eq!(rounds.ended(at(2_800), LOAD, answer(1)), None, "a new one has begun");
    }

    #[test]
    fn who_left_is_no_answer_and_who_was_too_late_is_a_drop() {
        let mut rounds = Rounds::new(TimeSpan::from_millis(1));
        let void = Ended { completion: Completion::Void, ..answer(9_000) };
        for _ in 0..20 {
            assert_eq!(rounds.ended(at(500), LOAD, void), None);
        }
        let late = Ended { completion: Completion::TimedOut, ..answer(100) };
        let last = (0..10).find_map(|_| rounds.ended(at(900), LOAD, late));
        assert_eq!(last.map(|round| round.dropped), Some(true));
    }
}
