//! Parses the lines of an access log into requests: the time at which a request began, its target,
//! its client, its result and its service time.
//!
//! A [`Format`] is chosen once for a file, and a [`Parser`] of that format parses the lines into
//! [`Line`]s in their order. Each format has its own module. The modules `fields`, `date` and
//! `json` contain what several formats share. [`Lines`] bounds the memory for a line, [`open`]
//! reads files that may be compressed, and [`Follow`] reads a file that grows. Relations between
//! lines are left to the caller.
//!
//! Clients influence the content of a log, so nothing in it is trusted. Lengths, times and numbers
//! are bounded, and a line that cannot be parsed is a [`Flaw`] with a reason, never a guess. Fields
//! that a format does not have stay unknown.
//!
//! Sources: each module names the documentation of its server. The sources of `combined` are Apache
//! httpd 2.4, `mod_log_config` (formats, escapes, `%t` is the time at which a request was
//! received), and nginx, `ngx_http_log_module` and `ngx_http_upstream_module` (`$request_time`,
//! `$upstream_response_time` and its lists; a line is written after a request has ended).

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
use std::net::Ipv6Addr;

use bywash_units::TimeSpan;
use siphasher::sip::SipHasher13;

pub(crate) use date::utc;

pub use apache::{FormatFlaw, LogFormat};
pub use files::{open, unpacked};
pub use follow::Follow;
pub use format::{Format, Parser};
pub use lines::{LONGEST, Lines};

/// The content of a line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A request to the application, whether it reached the application or not.
    Request(Logged<'a>),
    /// A malformed message, which no application has seen.
    NoRequest,
    /// A request that the web server answered itself, so that no application was involved.
    Elsewhere,
    /// A line about the log or its server, such as a directive.
    Metadata,
}

/// A request, as far as its log line describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// The time at which the request began, since 1970.
    pub began: TimeSpan,
    /// The precision of `began`: one second in the common formats.
    pub grain: TimeSpan,
    /// The method as it was sent, or empty if the line does not contain it.
    pub method: Cow<'a, str>,
    /// The path and the query as they were sent.
    pub target: Cow<'a, str>,
    /// The host that the request names, if the line contains it.
    pub host: Option<Cow<'a, str>>,
    /// The client, identified by what the line contains.
    pub who: Who,
    /// The user agent as it was sent, if the line contains it. It may be empty or `-`.
    pub agent: Option<Cow<'a, str>>,
    /// The result of the request.
    pub end: End,
    /// The time that the request waited before it was served, if the line contains it.
    pub waited: Option<TimeSpan>,
    /// The service time, if the line contains it. For a request that was not answered, it is the
    /// time until the failure was certain.
    pub service: Option<TimeSpan>,
    /// The number of bytes of the response that were sent, if the line contains it. The number
    /// includes the head if the server counts it, otherwise only the body.
    pub bytes: Option<u64>,
}

impl Logged<'_> {
    /// Returns a hash of the method and the target, to compare requests.
    pub fn request_hash(&self) -> u64 {
        key(&[&self.method, &self.target])
    }
}

/// The client of a request. The numbers are hashes of names. Equal names have equal hashes, which
/// are otherwise meaningless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// A client with a session of bywash.
    Session {
        /// The hash of the session.
        session: u64,
        /// The hash of the client's address.
        address: u64,
    },
    /// A client without a session of bywash, at this address.
    Stranger {
        /// The hash of the client's address.
        address: u64,
    },
    /// A client in a log without sessions.
    Browser {
        /// The hash of the address and the user agent, as far as the line contains them.
        browser: u64,
        /// The hash of the address. For IPv6, it is the hash of the network of 64 bits, because one
        /// client can use all addresses in it.
        address: u64,
    },
    /// A client in a log without sessions, whose user agent names a robot.
    Robot {
        /// The hash of the address and the user agent.
        browser: u64,
        /// The hash of the address, as for [`Who::Browser`].
        address: u64,
    },
    /// The line does not identify the client.
    Untold,
}

/// The result of a request, as far as its log line describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The request was answered with this status.
    Answered(u16),
    /// The request was answered with this status, but later than the patience of its class.
    Late(u16),
    /// The request was refused before the application served it.
    Refused,
    /// The client disconnected before the response was complete.
    Left,
    /// The application did not answer, or did not answer completely.
    Failed,
    /// The line does not contain the result.
    Untold,
}

impl End {
    /// Returns the result that a status alone indicates. The statuses 503 and 429 are refusals.
    /// nginx writes 499 for a client that has disconnected. Gateways use 502 and 504 for an
    /// application that did not answer.
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            429 | 503 => Self::Refused,
            499 => Self::Left,
            502 | 504 => Self::Failed,
            _ => Self::Answered(status),
        }
    }
}

/// The reason why a line cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The line is longer than [`LONGEST`] bytes.
    TooLong,
    /// The line contains control characters, which no server writes.
    Control,
    /// The line is not a JSON object of its format, for this reason.
    Json(String),
    /// A part of the format, which the text names, is missing or malformed.
    Part(&'static str),
    /// A time of the request is before 1990 or after 2199.
    Time,
    /// A duration of the request is longer than a day.
    Duration,
    /// The end of the line is missing: the file was truncated or closed before the line was
    /// complete.
    Cut,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "longer than {LONGEST} bytes"),
            Self::Control => f.write_str("control characters"),
            Self::Json(why) => write!(f, "not a valid JSON object of this format: {why}"),
            Self::Part(part) => write!(f, "no {part}"),
            Self::Time => f.write_str("the time is before 1990 or after 2199"),
            Self::Cut => f.write_str("the end of the line is missing"),
            Self::Duration => f.write_str("the request took longer than a day"),
        }
    }
}

/// The start of 1990, since 1970. An earlier time comes from a wrong clock or a misread line.
const EARLIEST: TimeSpan = TimeSpan::from_secs(631_152_000);
/// The start of 2200, since 1970. A time from then on comes from a wrong clock or a misread line.
const LATEST: TimeSpan = TimeSpan::from_secs(7_258_118_400);

/// The maximum duration of a request. A longer one is a [`Flaw::Duration`].
const DAY: TimeSpan = TimeSpan::from_secs(86_400);

/// Returns the time since 1970 at which a request began. `end` is the time at which it ended, and
/// `took` its duration. Returns a flaw if a time is out of bounds.
fn began(end: TimeSpan, took: TimeSpan) -> Result<TimeSpan, Flaw> {
    if !(EARLIEST..LATEST).contains(&end) {
        return Err(Flaw::Time);
    }
    if took > DAY {
        return Err(Flaw::Duration);
    }
    Ok(TimeSpan::from_nanos(end.as_nanos() - took.as_nanos()))
}

/// Identifies a client by its address and user agent. Returns [`Who::Untold`] if there is no
/// address.
fn browser(address: Option<&str>, browser: Option<&str>) -> Who {
    let Some(address) = address else { return Who::Untold };
    let agent = browser.unwrap_or_default();
    let (browser, address) = (key(&[address, agent]), network(address));
    if is_robot(agent) {
        Who::Robot { browser, address }
    } else {
        Who::Browser { browser, address }
    }
}

/// The words, or ends of words, that mark the user agents of robots. Letter case does not matter.
const ROBOTS: [&str; 11] = [
    "bot",
    "bots",
    "crawler",
    "spider",
    "slurp",
    "archiver",
    "externalhit",
    "externalagent",
    "mediapartners",
    "bingpreview",
    "pingdom",
];

/// Returns whether a user agent names a robot. `CUBOT` is a brand of phones and not a robot.
fn is_robot(agent: &str) -> bool {
    agent
        .split(|c: char| !c.is_ascii_alphabetic())
        .any(|word| ROBOTS.iter().any(|name| ends_in(word, name)) && !ends_in(word, "cubot"))
}

/// Returns whether a word of ASCII ends in `name`, regardless of letter case.
fn ends_in(word: &str, name: &str) -> bool {
    let front = word.len().checked_sub(name.len());
    front.is_some_and(|front| word[front..].eq_ignore_ascii_case(name))
}

/// Returns the hash of an address. For IPv6, it is the hash of the network of 64 bits.
fn network(address: &str) -> u64 {
    let ip = address.parse::<Ipv6Addr>().ok().filter(|ip| ip.to_ipv4_mapped().is_none());
    let Some(ip) = ip else { return key(&[address]) };
    let mut hasher = SipHasher13::new();
    hasher.write(&ip.octets()[..8]);
    hasher.finish()
}

/// Returns the hash of a list of names, which is the same in every run.
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

    #[test]
    fn a_robot_is_known_by_the_words_of_its_user_agent() {
        for robot in [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
            "Mozilla/5.0 (compatible; Baiduspider/2.0)",
            "facebookexternalhit/1.1",
            "MJ12bot",
            "my_crawler",
            "UptimeRobot/2.0",
        ] {
            let who = browser(Some("192.0.2.1"), Some(robot));
            assert!(matches!(who, Who::Robot { .. }), "{robot}");
        }
        for agent in [
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Mozilla/5.0 (Linux; Android 11; CUBOT_X50) AppleWebKit/537.36",
            "Abbott é 7.0",
            "-",
            "",
        ] {
            let who = browser(Some("192.0.2.1"), Some(agent));
            assert!(matches!(who, Who::Browser { .. }), "{agent}");
        }
        assert!(matches!(browser(Some("192.0.2.1"), None), Who::Browser { .. }));
        assert_eq!(browser(None, Some("bot")), Who::Untold);
    }

    #[test]
    fn a_client_has_one_address_whatever_its_browser_and_its_part_of_a_network() {
        let address = |address: &str, agent: &str| match browser(Some(address), Some(agent)) {
            Who::Browser { address, .. } => address,
            other => panic!("{other:?}"),
        };
        let one = address("2001:db8::1", "a");
        assert_eq!(address("2001:db8::2", "b"), one);
        assert_ne!(address("2001:db8:0:1::1", "a"), one);
        assert_eq!(address("192.0.2.1", "a"), address("192.0.2.1", "b"));
        for other in ["192.0.2.2", "::ffff:192.0.2.1"] {
            assert_ne!(address(other, "a"), address("192.0.2.1", "a"), "{other}");
        }
        assert_ne!(address("::ffff:192.0.2.1", "a"), address("::ffff:192.0.2.2", "a"));
    }
}
