//! The responses of the stop daemon.

use std::fmt;
use std::str::FromStr;

use crate::message::{Malformed, Reason, whole};
use crate::name::RequestId;

/// A response of the daemon. The line of a response begins with the number of the message that it
/// answers, or with 0 if it answers none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The message was carried out. The lease is now held, or after a release, the connection may
    /// be lent to another request.
    Done,
    /// The lease is not held, because its request has been stopped for this reason. No query may
    /// begin for that request.
    Stopped(Reason),
    /// The result of the first stop of a request: the numbers of its statements, cancelled or not.
    Cancelled {
        /// The number of statements that were cancelled, or that would have been cancelled if the
        /// daemon only observes.
        cancelled: u32,
        /// The number of statements of the request that were not cancelled: they may write, the
        /// budget is used up, or the database refused or was unreachable.
        spared: u32,
    },
    /// An instruction to the holder of a lease on the private database `self`, to stop its work.
    StopWork {
        /// The request that was stopped.
        request: RequestId,
        /// The reason for the stop.
        reason: Reason,
        /// The number that the holder chose for the leased work.
        connection: u64,
    },
    /// The message was not carried out, for this reason. The text explains it to people.
    Refused(Refusal, String),
}

/// The reason for which a message was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The line is not a valid message.
    Malformed,
    /// The sender is not allowed to send this message.
    Forbidden,
    /// No database of this name is configured.
    UnknownDatabase,
    /// The connection is leased to another holder, whose lease ends as well. The sender must close
    /// the connection.
    Taken,
    /// A limit on the number of leases is reached.
    Full,
    /// The sender holds no such lease, or the lease has expired.
    NotLeased,
    /// The message arrived after the time in its `not-after`.
    Late,
    /// A refusal of a newer daemon, for a reason that this version does not know.
    Unknown,
}

impl Refusal {
    /// All refusals that this version sends.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Forbidden,
        Self::UnknownDatabase,
        Self::Taken,
        Self::Full,
        Self::NotLeased,
        Self::Late,
    ];

    /// Returns the refusal's word in a response.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forbidden => "forbidden",
            Self::UnknownDatabase => "unknown_database",
            Self::Taken => "taken",
            Self::Full => "full",
            Self::NotLeased => "not_leased",
            Self::Late => "late",
            Self::Unknown => "unknown",
        }
    }
}

impl Answer {
    /// Parses a line without its line end. Returns the response and the number of the message that
    /// it answers, or 0 if it answers none.
    ///
    /// # Errors
    /// Returns an error if the line is not a response. The error contains the number at the start
    /// of the line if that could be read.
    pub fn parse(line: &str) -> Result<(u64, Self), Malformed> {
        let (number, answer) = line.split_once(' ').unwrap_or((line, ""));
        let number =
            whole(number).ok_or(Malformed { number: 0, why: "an answer begins with a number" })?;
        let answer = Self::of(answer).ok_or(Malformed { number, why: "this is not an answer" })?;
        Ok((number, answer))
    }

    fn of(text: &str) -> Option<Self> {
        // The explanation after a refusal contains spaces, so the line must not be split into
        // words.
        let (verb, refused) = text.split_once(' ').unwrap_or((text, ""));
        if verb == "ERR" {
            let (word, why) = refused.split_once(' ').unwrap_or((refused, ""));
            let known = Refusal::ALL.into_iter().find(|one| one.name() == word);
            let (refusal, why) = known.map_or((Refusal::Unknown, refused), |known| (known, why));
            return Some(Self::Refused(refusal, why.to_owned()));
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
            ["STOPPED", request, reason, connection] => Some(Self::StopWork {
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
            Self::StopWork { request, reason, connection } => {
                write!(f, "STOPPED {request} {} {connection}", reason.name())
            }
            Self::Refused(refusal, why) => write!(f, "ERR {} {why}", refusal.name()),
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
        let stop_work =
            |reason| Answer::StopWork { request: request.clone(), reason, connection: u64::MAX };
        let answers =
            Reason::ALL.into_iter().flat_map(|reason| [Answer::Stopped(reason), stop_work(reason)]);
        let refused = Refusal::ALL
            .into_iter()
            .map(|refusal| Answer::Refused(refusal, "close it: now".into()));
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

    #[test]
    fn a_refusal_of_a_newer_daemon_is_one() {
        for (line, why) in [("7 ERR because it is so", "because it is so"), ("7 ERR", "")] {
            let refused = Answer::Refused(Refusal::Unknown, why.into());
            assert_eq!(Answer::parse(line), Ok((7, refused)));
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_to_its_end(line in ".{0,100}") {
            let _ = Answer::parse(&line);
        }
    }
}
