//! Reads the observations of the other gateways, one gateway after the other.

use bywash_fleet::MemberId;
use bywash_units::{Time, TimeSpan};
use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

use crate::documents::{Asked, Unread};

/// The pause between two rounds of questions.
const PAUSE: TimeSpan = TimeSpan::from_secs(1);
/// The number of gateways for each question of a round. So a gateway reads from each other one
/// every five rounds.
const ONE_OF: usize = 5;
/// The maximum number of gateways that a round asks.
const MOST: usize = 4;

/// The open questions, and the receiver of the last one.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    asked: Time,
    last: Option<MemberId>,
    open: Vec<(String, Receiver<Result<String, Unread>>)>,
}

impl Reading {
    /// Returns the gateways to ask at this heartbeat. `current` are the other gateways that can
    /// answer, in the order of their numbers.
    pub(crate) fn next(&mut self, now: Time, current: &[(MemberId, String)]) -> Vec<String> {
        if now.since(self.asked) < PAUSE || current.is_empty() {
            return Vec::new();
        }
        self.asked = now;
        let from = current.iter().position(|(member, _)| Some(*member) > self.last).unwrap_or(0);
        let count = current.len().div_ceil(ONE_OF).min(MOST);
        let next: Vec<_> = current.iter().cycle().skip(from).take(count).collect();
        self.last = next.last().map(|(member, _)| *member);
        next.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// Returns the question to this gateway for a document.
    pub(crate) fn ask(&mut self, gateway: String, path: String) -> Asked {
        let (answer, answered) = oneshot::channel();
        self.open.push((gateway.clone(), answered));
        Asked { gateway, path, answer }
    }

    /// Returns the documents that have come, each with the name of its gateway.
    pub(crate) fn take_answers(&mut self) -> Vec<(String, String)> {
        let mut came = Vec::new();
        self.open.retain_mut(|(gateway, answered)| match answered.try_recv() {
            Ok(Ok(document)) => {
                came.push((gateway.clone(), document));
                false
            }
            Ok(Err(_)) | Err(TryRecvError::Closed) => false,
            Err(TryRecvError::Empty) => true,
        });
        came
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gateway_is_asked_in_turn_and_every_five_seconds() {
        for others in [1, 2, 7, 20] {
            let current: Vec<_> =
                (0..others).map(|number| (MemberId(number), format!("{number}"))).collect();
            let mut reading = Reading::default();
            let mut asked = Vec::new();
            for second in 1..=5 {
                let now = Time::ZERO + PAUSE * second;
                asked.extend(reading.next(now, &current));
                assert!(reading.next(now, &current).is_empty());
            }
            assert!(current.iter().all(|(_, name)| asked.contains(name)), "{asked:?}");
            assert!(asked.len() <= 20);
        }
    }

    #[test]
    fn a_gateway_that_has_gone_is_skipped() {
        let named = |number| (MemberId(number), format!("{number}"));
        let mut reading = Reading::default();
        let at = |second| Time::ZERO + PAUSE * second;
        assert_eq!(reading.next(at(1), &[named(1), named(2), named(3)]), ["1"]);
        assert_eq!(reading.next(at(2), &[named(1), named(3)]), ["3"]);
        assert_eq!(reading.next(at(3), &[named(1), named(3)]), ["1"]);
        assert!(reading.next(at(4), &[]).is_empty());
    }

    #[test]
    fn an_answer_comes_once_and_an_unanswered_question_is_forgotten() {
        let mut reading = Reading::default();
        let one = reading.ask("one".into(), "x".into());
        let two = reading.ask("two".into(), "x".into());
        drop(reading.ask("three".into(), "x".into()));
        assert!(reading.take_answers().is_empty());
        one.answer.send(Ok("text".into())).unwrap();
        two.answer.send(Err(Unread::Silent)).unwrap();
        assert_eq!(reading.take_answers(), [("one".into(), "text".into())]);
        assert!(reading.take_answers().is_empty() && reading.open.is_empty());
    }
}
