//! A line of an access log becomes a request: when it began, what it asked for, who asked, how it
//! ended and how long it was worked on.
//!
//! A [`Format`] is chosen once for a file, and a [`Parser`] of it turns the lines into [`Line`]s, one
//! after the other. Each format has its module; what several share is in `fields`, `date` and `json`.
//! [`Lines`] bounds how much of a line is ever held, [`open`] reads files that may be packed, and
//! [`Follow`] one that grows. What a line means beside others is for whoever reads them.
//!
//! A log is written by whoever sends requests, so nothing in it is believed: lengths, times and
//! numbers are bounded, and what does not parse is a [`Flaw`] with a reason and never a guess. What a
//! format does not tell stays untold.
//!
//! Sources: each module names the documentation of its server. Of `combined`: Apache httpd 2.4,
//! `mod_log_config` (formats, escapes, `%t` is when a request was received); nginx,
//! `ngx_http_log_module` and `ngx_http_upstream_module` (`$request_time`, `$upstream_response_time`
//! and its lists; a line is written when a request has ended).

mod apache;
mod caddy;
mod combined;
mod date;
mod envoy;
mod fields;
mod files;
mod follow;
mod format;
mod haproxy;
#[cfg(test)]
mod hostile;
mod json;
mod lines;
mod nginx;
mod ours;
mod w3c;

use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher;

use bywash_units::Span;
use siphasher::sip::SipHasher13;

pub(crate) use date::utc;

pub use apache::{FormatFlaw, LogFormat};
pub use files::{open, unpacked};
pub use follow::Follow;
pub use format::{Format, Parser};
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
    /// A line about the log or its server and not about a request.
    Aside,
}

/// A request, as far as its line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// When it came, since 1970.
    pub began: Span,
    /// How exactly that is known: whole seconds in the common formats.
    pub grain: Span,
    /// Its method, as it was sent; empty if the line does not tell.
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
    /// Bytes of the answer as they were sent, if the line tells: with its head if the server counts
    /// that, else of its body.
    pub bytes: Option<u64>,
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
    /// Whoever has this address and this browser, as far as the line tells: the log knows no
    /// sessions.
    Browser(u64),
    /// The line does not tell.
    Untold,
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
    /// The line does not tell.
    Untold,
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
    /// It has control characters, which no server writes.
    Control,
    /// It is no JSON object of its format, for this reason.
    Json(String),
    /// A part of its format that is not there or not as it should be.
    Part(&'static str),
    /// A time before 1990 or after 2199.
    Time,
    /// A wait or a service of more than a day.
    Duration,
    /// Its end is gone: the file was cut or given up before the line was whole.
    Cut,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "longer than {LONGEST} bytes"),
            Self::Control => f.write_str("control characters"),
            Self::Json(why) => write!(f, "not such an object: {why}"),
            Self::Part(part) => write!(f, "no {part}"),
            Self::Time => f.write_str("its time is before 1990 or after 2199"),
            Self::Cut => f.write_str("its end is gone"),
            Self::Duration => f.write_str("it took longer than a day"),
        }
    }
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

/// Who has this address and this browser, if there is an address.
fn browser(address: Option<&str>, browser: Option<&str>) -> Who {
    address
        .map_or(Who::Untold, |address| Who::Browser(key(&[address, browser.unwrap_or_default()])))
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
    fn names_run_together_are_other_names() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
