//! What the stop daemon says.

use std::fmt;
use std::str::FromStr;

use crate::message::{Malformed, Reason, whole};
use crate::name::RequestId;

/// An answer; its line begins with the number of the message, or with 0 if nobody asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done: the lease holds, or the connection may be lent to another.
    Done,
    /// A lease that does not hold: its request has been stopped, and nothing shall begin for it.
    Stopped(Reason),
    /// What became of a stop at first sight.
    Cancelled {
        /// Statements that were cancelled; where the daemon only observes, that would have been.
        cancelled: u32,
        /// Statements of the request that were not: they may write, or the budget is used up, or the database
        /// refused or was not there.
        spared: u32,
    },
    /// The holder of a lease of `self` is told to stop.
    Told {
        /// What for.
        request: RequestId,
        /// Why.
        reason: Reason,
        /// What it leased.
        connection: u64,
    },
    /// It is not done.
    Refused(Fault, String),
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It was no message.
    Malformed,
    /// Whoever says it may not.
    Forbidden,
    /// No such database is configured.
    UnknownDatabase,
    /// The connection is leased to somebody else; neither lease holds now. Close it.
    Taken,
    /// There are too many leases.
    Full,
    /// There is no such lease, or it has ended by itself.
    NotLeased,
    /// It came when it was too late.
    Late,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Forbidden,
        Self::UnknownDatabase,
        Self::Taken,
        Self::Full,
        Self::NotLeased,
        Self::Late,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forbidden => "forbidden",
            Self::UnknownDatabase => "unknown_database",
            Self::Taken => "taken",
            Self::Full => "full",
            Self::NotLeased => "not_leased",
            Self::Late => "late",
        }
    }
}

impl Answer {
    /// The answer of a line, without its end, and the number of what it answers: 0 if nobody asked.
    ///
    /// # Errors
    /// Says what is wrong, and the number in front if that could be read.
    pub fn parse(line: &str) -> Result<(u64, Self), Malformed> {
        let (number, answer) = line.split_once(' ').unwrap_or((line, ""));
        let number =
            whole(number).ok_or(Malformed { number: 0, why: "an answer begins with a number" })?;
        let answer = Self::of(answer).ok_or(Malformed { number, why: "it is no answer" })?;
        Ok((number, answer))
    }

    fn of(text: &str) -> Option<Self> {
        // What is wrong is said in a sentence.
        if let Some(refused) = text.strip_prefix("ERR ") {
            let (fault, why) = refused.split_once(' ').unwrap_or((refused, ""));
            let fault = Fault::ALL.into_iter().find(|one| one.name() == fault)?;
            return Some(Self::Refused(fault, why.to_owned()));
        }
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["OK"] => Some(Self::Done),
            ["OK", cancelled, spared] => {
                let count = |word: &str, key| word.strip_prefix(key)?.parse().ok();
                let (cancelled, spared) =
                    (count(cancelled, "cancelled=")?, count(spared, "spared=")?);
                Some(Self::Cancelled { cancelled, spared })
            }
            ["STOPPED", reason] => Reason::of(reason).map(Self::Stopped),
            ["STOPPED", request, reason, connection] => Some(Self::Told {
                request: RequestId::from_str(request).ok()?,
                reason: Reason::of(reason)?,
                connection: whole(connection)?,
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("OK"),
            Self::Stopped(reason) => write!(f, "STOPPED {}", reason.name()),
            Self::Cancelled { cancelled, spared } => {
                write!(f, "OK cancelled={cancelled} spared={spared}")
            }
            Self::Told { request, reason, connection } => {
                write!(f, "STOPPED {request} {} {connection}", reason.name())
            }
            Self::Refused(fault, why) => write!(f, "ERR {} {why}", fault.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let request: RequestId = "r1".parse().unwrap();
        let told = |reason| Answer::Told { request: request.clone(), reason, connection: u64::MAX };
        let answers =
            Reason::ALL.into_iter().flat_map(|reason| [Answer::Stopped(reason), told(reason)]);
        let refused =
            Fault::ALL.into_iter().map(|fault| Answer::Refused(fault, "close it: now".into()));
        let others = [Answer::Done, Answer::Cancelled { cancelled: 3, spared: 0 }];
        for answer in answers.chain(refused).chain(others) {
            assert_eq!(Answer::parse(&format!("7 {answer}")), Ok((7, answer)));
        }
    }

    #[test]
    fn what_is_no_answer_is_told_under_its_number() {
        for line in [
            "7",
            "7 ",
            "7 what",
            "7 OK and more",
            "7 STOPPED because",
            "7 ERR because",
            "7 OK cancelled=1",
            "7 OK cancelled=x spared=0",
            "7 STOPPED r/1 deadline 3",
            "7 STOPPED r1 deadline x",
        ] {
            assert_eq!(Answer::parse(line).map_err(|wrong| wrong.number), Err(7), "{line}");
        }
        assert_eq!(Answer::parse("OK").map_err(|wrong| wrong.number), Err(0));
        assert_eq!(Answer::parse("+7 OK").map_err(|wrong| wrong.number), Err(0));
    }

    proptest! {
        #[test]
        fn any_line_is_read_to_its_end(line in ".{0,100}") {
            let _ = Answer::parse(&line);
        }
    }
}
