//! Reads the observations of the other gateways, one gateway after the other.

use std::collections::BTreeMap;

use bywash_fleet::MemberId;
use bywash_units::{Time, TimeSpan};
use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

use crate::documents::{Asked, Unread};

/// The pause between two rounds of questions.
const PAUSE: TimeSpan = TimeSpan::from_secs(1);
/// The number of rounds in which each gateway is read at least once, if there are at most
/// `ROUNDS * MOST` others.
const ROUNDS: usize = 5;
/// The maximum number of questions in a round.
const MOST: usize = 4;

/// The questions to other gateways for their observations.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The time of the last round.
    asked: Time,
    /// The gateway of the last question.
    last: Option<MemberId>,
    open: Vec<Open>,
    /// The time at which the requests of each gateway were last read.
    read: BTreeMap<String, Time>,
}

#[derive(Debug)]
struct Open {
    gateway: String,
    asked: Time,
    answered: Receiver<Result<String, Unread>>,
}

/// A document with the observations of another gateway.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Observations {
    pub(crate) gateway: String,
    pub(crate) document: String,
    /// The estimated time since the document was written: half of the time since the question.
    pub(crate) age: TimeSpan,
}

impl Reading {
    /// Returns the gateways to ask at this heartbeat: those whose turn it is, and that have no open
    /// question. `current` are the other gateways that can answer, in the order of their numbers.
    pub(crate) fn next(&mut self, now: Time, current: &[(MemberId, String)]) -> Vec<String> {
        if now.since(self.asked) < PAUSE || current.is_empty() {
            return Vec::new();
        }
        self.asked = now;
        let from = current.iter().position(|(member, _)| Some(*member) > self.last).unwrap_or(0);
        let count = current.len().div_ceil(ROUNDS).min(MOST);
        let next: Vec<_> = current.iter().cycle().skip(from).take(count).collect();
        self.last = next.last().map(|(member, _)| *member);
        let is_open = |name: &String| self.open.iter().any(|open| open.gateway == *name);
        next.into_iter().map(|(_, name)| name.clone()).filter(|name| !is_open(name)).collect()
    }

    /// Returns the question to this gateway for a document.
    pub(crate) fn ask(&mut self, now: Time, gateway: String, path: String) -> Asked {
        let (answer, answered) = oneshot::channel();
        self.open.push(Open { gateway: gateway.clone(), asked: now, answered });
        Asked { gateway, path, answer }
    }

    /// Returns the documents that have come.
    pub(crate) fn take_answers(&mut self, now: Time) -> Vec<Observations> {
        let mut came = Vec::new();
        self.open.retain_mut(|open| match open.answered.try_recv() {
            Ok(Ok(document)) => {
                let gateway = open.gateway.clone();
                came.push(Observations { gateway, document, age: now.since(open.asked) / 2 });
                false
            }
            Ok(Err(_)) | Err(TryRecvError::Closed) => false,
            Err(TryRecvError::Empty) => true,
        });
        came
    }

    /// Notes that the requests of a gateway were read.
    pub(crate) fn note_read(&mut self, now: Time, gateway: String) {
        self.read.insert(gateway, now);
    }

    /// Returns the time since the requests of a gateway were read; `None` if they never were.
    pub(crate) fn age(&self, now: Time, gateway: &str) -> Option<TimeSpan> {
        self.read.get(gateway).map(|read| now.since(*read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Time {
        Time::ZERO + PAUSE * second
    }

    fn gateways(count: u64) -> Vec<(MemberId, String)> {
        (0..count).map(|number| (MemberId(number), format!("{number}"))).collect()
    }

    #[test]
    fn each_gateway_is_asked_in_turn() {
        for (others, in_five_rounds) in [(1, 5), (2, 5), (7, 10), (20, 20), (100, 20)] {
            let current = gateways(others);
            let mut reading = Reading::default();
            let mut asked = Vec::new();
            for second in 1..=5 {
                asked.extend(reading.next(at(second), &current));
                assert!(reading.next(at(second), &current).is_empty());
            }
            assert_eq!(asked.len(), in_five_rounds);
            let expected: Vec<_> =
                (0..in_five_rounds as u64).map(|n| format!("{}", n % others)).collect();
            assert_eq!(asked, expected);
        }
    }

    #[test]
    fn a_gateway_that_has_gone_is_skipped() {
        let named = |number| (MemberId(number), format!("{number}"));
        let mut reading = Reading::default();
        assert_eq!(reading.next(at(1), &[named(1), named(2), named(3)]), ["1"]);
        assert_eq!(reading.next(at(2), &[named(1), named(3)]), ["3"]);
        assert_eq!(reading.next(at(3), &[named(1), named(3)]), ["1"]);
        assert!(reading.next(at(4), &[]).is_empty());
    }

    #[test]
    fn a_gateway_is_not_asked_again_before_its_answer() {
        let mut reading = Reading::default();
        let current = gateways(1);
        assert_eq!(reading.next(at(1), &current), ["0"]);
        let asked = reading.ask(at(1), "0".into(), "x".into());
        assert!(reading.next(at(2), &current).is_empty());
        asked.answer.send(Err(Unread::Silent)).unwrap();
        assert_eq!(reading.take_answers(at(3)), []);
        assert_eq!(reading.next(at(3), &current), ["0"]);
    }

    #[test]
    fn an_answer_comes_once_with_its_age() {
        let mut reading = Reading::default();
        let one = reading.ask(at(1), "one".into(), "x".into());
        drop(reading.ask(at(1), "two".into(), "x".into()));
        one.answer.send(Ok("text".into())).unwrap();
        let (gateway, document) = ("one".into(), "text".into());
        let age = TimeSpan::from_secs(2);
        assert_eq!(reading.take_answers(at(5)), [Observations { gateway, document, age }]);
        assert!(reading.take_answers(at(5)).is_empty() && reading.open.is_empty());
        reading.note_read(at(5), "one".into());
        assert_eq!(reading.age(at(9), "one"), Some(TimeSpan::from_secs(4)));
        assert_eq!(reading.age(at(9), "two"), None);
    }
}
