//! Documents that operators and gateways read at other gateways.
//!
//! A gateway asks another one for a document by its path. The answer comes in parts, because a
//! message is short. A lost part is not sent again: the question ends without an answer then.

use std::collections::BTreeMap;

use bywash_fleet::MemberId;
use bywash_units::{Time, TimeSpan};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// The maximum number of bytes of the text of one part. The text may become twice as long in a
/// message.
const PART: usize = 6 * 1024;
/// The maximum number of parts of a document.
const MOST_PARTS: usize = 64;
/// The maximum number of questions without an answer. The gateway itself asks up to eight.
const MOST_OPEN: usize = 32;
/// The time after which a question has no answer.
const PATIENCE: TimeSpan = TimeSpan::from_secs(2);

/// Why a document of another gateway was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// The fleet has no gateway with this name.
    #[error("the fleet has no gateway with this name: `bywash fleet status` lists them all")]
    Unknown,
    /// Too many documents are being read.
    #[error("too many documents of other gateways are being read: retry in a few seconds")]
    Busy,
    /// The gateway has no such document, or it is too long.
    #[error("the gateway has no such document, or one that is too long: ask that gateway itself")]
    TooLong,
    /// The gateway did not answer.
    #[error("the gateway does not answer: `bywash fleet status` says when it was heard last")]
    Silent,
}

/// A question: the name of a gateway, and the path of the document.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) gateway: String,
    pub(crate) path: String,
    pub(crate) answer: oneshot::Sender<Result<String, Unread>>,
}

/// A question on its way to another gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) from: MemberId,
    pub(crate) number: u64,
    pub(crate) path: String,
}

/// A part of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) from: MemberId,
    /// The number of the question.
    pub(crate) number: u64,
    /// The index of the part.
    index: usize,
    /// The number of all parts; 0 if there is no document, or if it is too long.
    parts: usize,
    text: String,
}

/// Splits a document into parts. A document that is empty or too long becomes one part that says so.
pub(crate) fn split(from: MemberId, number: u64, document: &str) -> Vec<Part> {
    let mut texts = Vec::new();
    let mut rest = document;
    while !rest.is_empty() {
        let mut end = PART.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (text, after) = rest.split_at(end);
        texts.push(text.to_owned());
        rest = after;
    }
    let parts = texts.len();
    if parts == 0 || parts > MOST_PARTS {
        return vec![Part { from, number, index: 0, parts: 0, text: String::new() }];
    }
    let part = |(index, text)| Part { from, number, index, parts, text };
    texts.into_iter().enumerate().map(part).collect()
}

/// The questions of this gateway that have no answer yet.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions {
    open: BTreeMap<u64, Open>,
    last: u64,
}

#[derive(Debug)]
struct Open {
    to: MemberId,
    asked: Time,
    parts: Vec<Option<String>>,
    answer: oneshot::Sender<Result<String, Unread>>,
}

impl OpenQuestions {
    /// Notes a question, and returns it to be sent to `to`. Returns nothing if too many are open.
    pub(crate) fn ask(
        &mut self,
        now: Time,
        from: MemberId,
        to: MemberId,
        asked: Asked,
    ) -> Option<Question> {
        if self.open.len() >= MOST_OPEN {
            // The operator may have gone.
            let _ = asked.answer.send(Err(Unread::Busy));
            return None;
        }
        self.last += 1;
        let open = Open { to, asked: now, parts: Vec::new(), answer: asked.answer };
        self.open.insert(self.last, open);
        Some(Question { from, number: self.last, path: asked.path })
    }

    /// Takes a part of an answer. Ignores one that was not asked for.
    pub(crate) fn take(&mut self, part: Part) {
        let Some(open) = self.open.get_mut(&part.number).filter(|open| open.to == part.from) else {
            return;
        };
        if part.parts == 0 {
            if let Some(open) = self.open.remove(&part.number) {
                let _ = open.answer.send(Err(Unread::TooLong));
            }
            return;
        }
        if part.parts > MOST_PARTS || part.text.len() > PART {
            return;
        }
        open.parts.resize(part.parts, None);
        if let Some(place) = open.parts.get_mut(part.index) {
            *place = Some(part.text);
        }
        let whole: Option<String> = open.parts.iter().map(Option::as_deref).collect();
        if let Some(document) = whole
            && let Some(open) = self.open.remove(&part.number)
        {
            let _ = open.answer.send(Ok(document));
        }
    }

    /// Ends the questions that have waited too long.
    pub(crate) fn end_old(&mut self, now: Time) {
        let is_old = |open: &Open| now.since(open.asked) > PATIENCE;
        while let Some(number) = self.open.iter().find(|(_, open)| is_old(open)).map(|(n, _)| *n)
            && let Some(open) = self.open.remove(&number)
        {
            let _ = open.answer.send(Err(Unread::Silent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MemberId = MemberId(1);
    const TWO: MemberId = MemberId(2);

    fn asked() -> (Asked, oneshot::Receiver<Result<String, Unread>>) {
        let (answer, receiver) = oneshot::channel();
        (Asked { gateway: "two".into(), path: "/v1/status".into(), answer }, receiver)
    }

    #[test]
    fn a_document_comes_whole_whatever_the_order_of_its_parts() {
        let document = "ä".repeat(3 * PART);
        let mut open = OpenQuestions::default();
        let (question, mut answer) = asked();
        let question = open.ask(Time::ZERO, ONE, TWO, question).unwrap();
        let mut parts = split(TWO, question.number, &document);
        assert!(parts.len() > 3 && parts.iter().all(|part| part.text.len() <= PART));
        parts.reverse();
        for part in parts {
            assert!(answer.try_recv().is_err());
            open.take(Part { from: ONE, text: "forged".into(), ..part.clone() });
            open.take(part);
        }
        assert_eq!(answer.try_recv().unwrap(), Ok(document));
    }

    #[test]
    fn a_question_without_an_answer_ends() {
        let mut open = OpenQuestions::default();
        let (question, mut answer) = asked();
        let question = open.ask(Time::ZERO, ONE, TWO, question).unwrap();
        let nonsense = |index, parts| Part {
            from: TWO,
            number: question.number,
            index,
            parts,
            text: "x".into(),
        };
        for part in [nonsense(0, MOST_PARTS + 1), nonsense(5, 2)] {
            open.take(part);
        }
        open.end_old(Time::ZERO + PATIENCE);
        assert!(answer.try_recv().is_err());
        open.end_old(Time::ZERO + PATIENCE * 2);
        assert_eq!(answer.try_recv().unwrap(), Err(Unread::Silent));
        assert!(open.open.is_empty());
    }

    #[test]
    fn the_number_of_questions_and_the_length_of_a_document_are_bounded() {
        let mut open = OpenQuestions::default();
        for _ in 0..MOST_OPEN {
            assert!(open.ask(Time::ZERO, ONE, TWO, asked().0).is_some());
        }
        let (question, mut answer) = asked();
        assert_eq!(open.ask(Time::ZERO, ONE, TWO, question), None);
        assert_eq!(answer.try_recv().unwrap(), Err(Unread::Busy));
        let mut open = OpenQuestions::default();
        let (question, mut answer) = asked();
        let question = open.ask(Time::ZERO, ONE, TWO, question).unwrap();
        let parts = split(TWO, question.number, &"x".repeat(PART * MOST_PARTS + 1));
        for part in parts {
            open.take(part);
        }
        assert_eq!(answer.try_recv().unwrap(), Err(Unread::TooLong));
        assert_eq!(split(TWO, 1, &"x".repeat(PART * MOST_PARTS)).len(), MOST_PARTS);
    }
}
