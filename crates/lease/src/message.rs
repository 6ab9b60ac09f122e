//! The messages to the stop daemon, one per line.

use std::fmt;
use std::str::FromStr;

use crate::name::{DatabaseName, RequestId};

/// The maximum length of a line in bytes, without its line end. A longer line is not a valid
/// message.
pub const LONGEST: usize = 512;

/// A message, with the number that its answer will carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number that the sender chooses. It must not be 0, which marks unsolicited lines of the
    /// daemon.
    pub number: u64,
    /// The content of the message.
    pub command: Command,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A connection works for a request from now on.
    Lease {
        /// The request for which the connection works.
        request: RequestId,
        /// The database of the connection.
        database: DatabaseName,
        /// The number by which the database identifies the connection.
        connection: u64,
        /// The time at which the lease expires, in milliseconds since 1970 (UTC); `None` for a
        /// lease without an end.
        not_after: Option<u64>,
    },
    /// A connection no longer works for a request.
    Release {
        /// The request for which the connection worked.
        request: RequestId,
        /// The database of the connection.
        database: DatabaseName,
        /// The number by which the database identifies the connection.
        connection: u64,
    },
    /// All work for a request shall stop.
    Stop {
        /// The request that shall be stopped.
        request: RequestId,
        /// The reason for the stop.
        reason: Reason,
        /// The part of the work that shall stop.
        scope: Scope,
        /// The time after which the stop must not be carried out, in milliseconds since 1970 (UTC).
        not_after: Option<u64>,
        /// The trace and span under which the request was forwarded, if its queries are tagged with
        /// them.
        traceparent: Option<String>,
    },
}

/// The part of a request's work that is stopped. The name of a request is passed on with its calls
/// to other services. The gateway that gave the name stops the work of all services. A service
/// whose part ends before the others stops only its own part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All work for the request, at every service, including work that begins later.
    #[default]
    All,
    /// The work that was leased over the connection to the daemon on which the stop arrives:
    /// `scope=own`.
    Own,
}

/// The reason for which a request is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The client has disconnected.
    ClientLeft,
    /// The request has run for too long at the present load.
    RanTooLong,
    /// The deadline that the client set has passed.
    Deadline,
}

/// The error for a line that is not a valid message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Malformed {
    /// The number at the start of the line, or 0 if there is none.
    pub number: u64,
    /// The mistake in the line, for people.
    pub why: &'static str,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::ClientLeft, Self::RanTooLong, Self::Deadline];

    /// Returns the reason's word in a message.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientLeft => "client_left",
            Self::RanTooLong => "ran_too_long",
            Self::Deadline => "deadline",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == word)
    }
}

impl Message {
    /// Parses a line without its line end.
    ///
    /// # Errors
    /// Returns an error if the line is not a valid message. The error contains the number at the
    /// start of the line if that could be read.
    pub fn parse(line: &[u8]) -> Result<Self, Malformed> {
        if line.len() > LONGEST {
            return Err(Malformed { number: 0, why: "a line is at most 512 bytes long" });
        }
        let text = std::str::from_utf8(line).ok().filter(|text| text.is_ascii());
        let text = text.ok_or(Malformed { number: 0, why: "a line is plain ASCII" })?;
        let mut words = text.split(' ');
        let number = words.next().and_then(whole).filter(|number| *number != 0);
        let number = number.ok_or(Malformed {
            number: 0,
            why: "a line begins with a number above 0, which its answer repeats",
        })?;
        let verb = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        match Command::parse(verb, &words) {
            Ok(command) => Ok(Self { number, command }),
            Err(why) => Err(Malformed { number, why }),
        }
    }
}

impl Command {
    fn parse(verb: &str, words: &[&str]) -> Result<Self, &'static str> {
        match (verb, words) {
            ("LEASE", [request, database, connection, rest @ ..]) => {
                let (request, database) = (name(request)?, base(database)?);
                let connection = number(connection)?;
                let [not_after] = named(["not-after"], rest)?;
                Ok(Self::Lease {
                    request,
                    database,
                    connection,
                    not_after: not_after.map(moment).transpose()?,
                })
            }
            ("RELEASE", [request, database, connection]) => Ok(Self::Release {
                request: name(request)?,
                database: base(database)?,
                connection: number(connection)?,
            }),
            ("STOP", [request, reason, rest @ ..]) => {
                let request = name(request)?;
                let reason = Reason::of(reason);
                let reason = reason.ok_or("a reason is client_left, ran_too_long or deadline")?;
                let [scope, not_after, trace] = named(["scope", "not-after", "traceparent"], rest)?;
                Ok(Self::Stop {
                    request,
                    reason,
                    scope: match scope {
                        None => Scope::All,
                        Some("own") => Scope::Own,
                        Some(_) => return Err("a scope is own, or is left out"),
                    },
                    not_after: not_after.map(moment).transpose()?,
                    traceparent: trace.map(traceparent).transpose()?,
                })
            }
            ("LEASE", _) => Err("write LEASE REQUEST DATABASE CONNECTION [not-after=MS]"),
            ("RELEASE", _) => Err("write RELEASE REQUEST DATABASE CONNECTION"),
            ("STOP", _) => {
                Err("write STOP REQUEST REASON [scope=own] [not-after=MS] [traceparent=…]")
            }
            _ => Err("a message is LEASE, RELEASE or STOP"),
        }
    }
}

fn name(word: &str) -> Result<RequestId, &'static str> {
    RequestId::from_str(word).map_err(|_| "a request is 1 to 128 letters, digits or any of . _ : -")
}

fn base(word: &str) -> Result<DatabaseName, &'static str> {
    DatabaseName::from_str(word).map_err(|_| "a database is 1 to 32 letters, digits or any of _ -")
}

fn number(word: &str) -> Result<u64, &'static str> {
    whole(word).ok_or("a connection is the number that its database has for it")
}

fn moment(word: &str) -> Result<u64, &'static str> {
    whole(word).ok_or("not-after is a time in milliseconds since 1970")
}

/// Checks that the word is a `traceparent` of version 00 of the W3C Trace Context, in lower case.
fn traceparent(word: &str) -> Result<String, &'static str> {
    let hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<&str> = word.split('-').collect();
    match parts[..] {
        ["00", trace, span, flags]
            if (trace.len(), span.len(), flags.len()) == (32, 16, 2)
                && hex(trace)
                && hex(span)
                && hex(flags) =>
        {
            Ok(word.to_owned())
        }
        _ => Err("a traceparent is 00-TRACE-SPAN-FLAGS in hexadecimal digits"),
    }
}

/// Parses a number that consists of digits only. Returns `None` for anything else; the standard
/// library's `parse` also accepts a sign.
pub(crate) fn whole(word: &str) -> Option<u64> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| word.parse().ok()).flatten()
}

/// Returns the values of `key=value` words, in the order of `keys`. Each key may occur once.
fn named<'a, const N: usize>(
    keys: [&str; N],
    words: &[&'a str],
) -> Result<[Option<&'a str>; N], &'static str> {
    let mut found = [None; N];
    for word in words {
        let (key, value) = word.split_once('=').ok_or("an option is written KEY=VALUE")?;
        let place = keys.iter().position(|one| *one == key).ok_or("this key is unknown")?;
        if found[place].replace(value).is_some() {
            return Err("a key may occur once");
        }
    }
    Ok(found)
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match &self.command {
            Command::Lease { request, database, connection, not_after } => {
                write!(f, "{number} LEASE {request} {database} {connection}")?;
                until(f, *not_after)
            }
            Command::Release { request, database, connection } => {
                write!(f, "{number} RELEASE {request} {database} {connection}")
            }
            Command::Stop { request, reason, scope, not_after, traceparent } => {
                write!(f, "{number} STOP {request} {}", reason.name())?;
                if *scope == Scope::Own {
                    f.write_str(" scope=own")?;
                }
                until(f, *not_after)?;
                traceparent.iter().try_for_each(|trace| write!(f, " traceparent={trace}"))
            }
        }
    }
}

fn until(f: &mut fmt::Formatter<'_>, not_after: Option<u64>) -> fmt::Result {
    not_after.iter().try_for_each(|moment| write!(f, " not-after={moment}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn why(line: &str) -> (u64, &'static str) {
        let wrong = Message::parse(line.as_bytes()).expect_err(line);
        (wrong.number, wrong.why)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let lines = [
            "7 LEASE 5f1c9a7e00000d42 shop 4711",
            "18446744073709551615 LEASE a.b_c:d-e shop-2 0 not-after=1800000000000",
            "8 RELEASE r self 18446744073709551615",
            "1 STOP r client_left",
            "1 STOP r ran_too_long scope=own",
            "1 STOP r deadline scope=own not-after=1 traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ];
        for line in lines {
            assert_eq!(Message::parse(line.as_bytes()).unwrap().to_string(), line);
        }
    }

    #[test]
    fn a_line_that_is_no_message_is_told_what_is_wrong_with_it_under_its_number() {
        assert_eq!(why("").0, 0);
        assert_eq!(why("STOP r client_left").0, 0);
        assert_eq!(why("0 STOP r client_left").0, 0);
        assert_eq!(why("+1 STOP r client_left").0, 0);
        assert_eq!(why("18446744073709551616 STOP r client_left").0, 0);
        assert_eq!(why("3"), (3, "a message is LEASE, RELEASE or STOP"));
        assert_eq!(why("3 stop r client_left"), (3, "a message is LEASE, RELEASE or STOP"));
        assert_eq!(why("3 STOP r bored").1, "a reason is client_left, ran_too_long or deadline");
        assert_eq!(
            why("3 STOP  r client_left").1,
            "a request is 1 to 128 letters, digits or any of . _ : -"
        );
        assert_eq!(why("3 STOP r client_left now").1, "an option is written KEY=VALUE");
        assert_eq!(why("3 STOP r client_left after=1").1, "this key is unknown");
        assert_eq!(why("3 STOP r client_left not-after=1 not-after=2").1, "a key may occur once");
        assert_eq!(why("3 STOP r client_left scope=all").1, "a scope is own, or is left out");
        assert_eq!(
            why("3 STOP r client_left not-after=-1").1,
            "not-after is a time in milliseconds since 1970"
        );
        assert_eq!(
            why("3 STOP r/../x client_left").1,
            "a request is 1 to 128 letters, digits or any of . _ : -"
        );
        assert_eq!(
            why("3 LEASE r sh'op 1").1,
            "a database is 1 to 32 letters, digits or any of _ -"
        );
        assert_eq!(
            why("3 LEASE r shop 1;drop").1,
            "a connection is the number that its database has for it"
        );
        assert_eq!(why("3 RELEASE r shop").1, "write RELEASE REQUEST DATABASE CONNECTION");
        assert_eq!(why(&format!("3 STOP {} client_left", "r".repeat(129))).0, 3);
        assert_eq!(why(&"1".repeat(LONGEST + 1)).1, "a line is at most 512 bytes long");
        assert_eq!(
            Message::parse(b"1 STOP \xff client_left").unwrap_err().why,
            "a line is plain ASCII"
        );
        for trace in [
            "",
            "00",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            let line = format!("3 STOP r client_left traceparent={trace}");
            assert_eq!(why(&line).1, "a traceparent is 00-TRACE-SPAN-FLAGS in hexadecimal digits");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_much(line in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(message) = Message::parse(&line) {
                prop_assert_eq!(message.to_string().into_bytes(), line);
            }
        }

        #[test]
        fn what_looks_like_a_message_is_read_as_written_or_refused(
            line in "[0-9]{1,3} (LEASE|RELEASE|STOP) [a-z0-9:. =-]{0,40}",
        ) {
            if let Ok(message) = Message::parse(line.as_bytes()) {
                let again = Message::parse(message.to_string().as_bytes());
                prop_assert_eq!(again.unwrap(), message);
            }
        }
    }
}
