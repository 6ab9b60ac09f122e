//! A line of an access log becomes a request: when it began, what it asked for, who asked, how it
//! ended and how long it was worked on.
//!
//! Two families of lines are read, each line for itself, so a file may have both: ours, a JSON
//! object (`log.access`, and what `bywash tap --json` prints), in `ours`; and the `common` and
//! `combined` formats of Apache httpd and nginx, with nginx's times as `rt=` and `urt=` behind if
//! they are there, in `combined`. Everything here is a pure function of one line: what a line means
//! beside others is for whoever reads them. [`Lines`] bounds how much of a line is ever held.
//!
//! A log is written by whoever sends requests, so nothing in it is believed: lengths, times and
//! numbers are bounded, and what does not parse is a [`Flaw`] with a reason and never a guess.
//!
//! Sources: Apache httpd 2.4, `mod_log_config` (formats, escapes, `%t` is when a request was
//! received); nginx, `ngx_http_log_module` and `ngx_http_upstream_module` (`$request_time`,
//! `$upstream_response_time` and its lists; a line is written when a request has ended).

mod combined;
mod date;
mod lines;
mod ours;

use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher;

use bywash_units::Span;
use siphasher::sip::SipHasher13;

pub use lines::{LONGEST, Lines};

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A request.
    Request(Logged<'a>),
    /// A message that was none: it was malformed, and no application saw it.
    NoRequest,
    /// A request that the server in front answered itself: it went to no application.
    Elsewhere,
}

/// A request, as far as its line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// When it came, since 1970.
    pub began: Span,
    /// How exactly that is known: whole seconds in the common formats.
    pub grain: Span,
    /// Its method, as it was sent.
    pub method: Cow<'a, str>,
    /// Path and query, as they were sent.
    pub target: Cow<'a, str>,
    /// Who asked.
    pub who: Who,
    /// How it ended.
    pub end: End,
    /// How long it waited before it was worked on, if the line tells.
    pub waited: Option<Span>,
    /// How long it was worked on, if the line tells. Of one that was not answered it is how long
    /// until that was clear.
    pub service: Option<Span>,
}

impl Logged<'_> {
    /// What was asked for: a hash, the same for the same method and target.
    pub fn wish(&self) -> u64 {
        key(&[&self.method, &self.target])
    }
}

/// Who asked. Keys are hashes: equal for the same name, and nothing else can be read from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// Whoever has this session.
    Session {
        /// The session.
        session: u64,
        /// Her address.
        address: u64,
    },
    /// Somebody without a session, at this address.
    Stranger {
        /// The address.
        address: u64,
    },
    /// Whoever has this address and this browser: the log knows no sessions.
    Browser(u64),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was answered, with this status.
    Answered(u16),
    /// It was answered, later than its class's patience.
    Late(u16),
    /// It was refused before it was worked on.
    Refused,
    /// Its client had left before.
    Left,
    /// Whoever should have answered it did not, or broke off.
    Failed,
}

impl End {
    /// What a bare status tells. 503 and 429 are refusals, 499 is nginx's for a client that has
    /// left, 502 and 504 a gateway's for an application that did not answer.
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            429 | 503 => Self::Refused,
            499 => Self::Left,
            502 | 504 => Self::Failed,
            _ => Self::Answered(status),
        }
    }
}

/// Why a line is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It is longer than [`LONGEST`] bytes.
    TooLong,
    /// It is no UTF-8.
    NotText,
    /// It has control characters, which no server writes.
    Control,
    /// It is no JSON object of ours, for this reason.
    Json(String),
    /// A part of the common format that is not there or not as it should be.
    Part(&'static str),
    /// A time before 1990 or after 2199.
    Time,
    /// A wait or a service of more than a day.
    Duration,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "longer than {LONGEST} bytes"),
            Self::NotText => f.write_str("not UTF-8"),
            Self::Control => f.write_str("control characters"),
            Self::Json(why) => write!(f, "not a line of bywash: {why}"),
            Self::Part(part) => write!(f, "no {part}"),
            Self::Time => f.write_str("its time is before 1990 or after 2199"),
            Self::Duration => f.write_str("it took longer than a day"),
        }
    }
}

/// Reads one line, without its end.
///
/// # Errors
/// What is wrong with it.
pub fn parse(line: &[u8]) -> Result<Line<'_>, Flaw> {
    if line.len() > LONGEST {
        return Err(Flaw::TooLong);
    }
    let text = std::str::from_utf8(line).map_err(|_| Flaw::NotText)?.trim();
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err(Flaw::Control);
    }
    if text.starts_with('{') { ours::parse(text) } else { combined::parse(text) }
}

/// 1990 and 2200, since 1970: beyond them a clock was wrong or a line is not what it seems.
const EARLIEST: Span = Span::from_secs(631_152_000);
const LATEST: Span = Span::from_secs(7_258_118_400);

/// No request takes longer than a day.
const DAY: Span = Span::from_secs(86_400);

/// When a request began that ended at `end` after all of `took`.
fn began(end: Span, took: Span) -> Result<Span, Flaw> {
    if !(EARLIEST..LATEST).contains(&end) {
        return Err(Flaw::Time);
    }
    if took > DAY {
        return Err(Flaw::Duration);
    }
    Ok(Span::from_nanos(end.as_nanos() - took.as_nanos()))
}

/// A key for names; the same in every run.
fn key(names: &[&str]) -> u64 {
    let mut hasher = SipHasher13::new();
    for name in names {
        hasher.write(name.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_both_families_of_lines() {
        let ours = br#"{"time":1700000000000,"client":"::1","status":400,"fault":"framing"}"#;
        assert_eq!(parse(ours), Ok(Line::NoRequest));
        let common = br#"::1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 5"#;
        assert!(matches!(parse(common), Ok(Line::Request(_))));
    }

    #[test]
    fn hostile_lines_are_flaws_and_never_more() {
        assert_eq!(parse(&vec![b'{'; 10 << 20]), Err(Flaw::TooLong));
        assert!(matches!(parse(&vec![b'{'; LONGEST]), Err(Flaw::Json(_))));
        assert_eq!(parse(b"1.2.3.4 - - \xff"), Err(Flaw::NotText));
        assert_eq!(parse(b"1.2.3.4 - \0 - [x]"), Err(Flaw::Control));
        assert_eq!(parse("1.2.3.4 \u{9b}2J".as_bytes()), Err(Flaw::Control));
        let deep = "[".repeat(LONGEST - 8);
        assert!(matches!(parse(format!("{{\"a\":{deep}").as_bytes()), Err(Flaw::Json(_))));
        for line in ["", " ", "-", "\"", "[", "[]", "a [", "a [] \"", "a [] \"\\"] {
            assert!(parse(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn names_run_together_are_other_names() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
