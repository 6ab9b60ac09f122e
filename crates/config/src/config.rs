//! The configuration, resolved: names are types, spans are spans, nothing is left to check.

use std::path::PathBuf;

use bywash_engine::catalog::Settings;
use bywash_engine::classify::Classifier;
use bywash_engine::{Class, Options};
use bywash_units::Span;

use crate::elephants::Elephants;
use crate::identify::Identify;
use crate::levels::{Level, Levels};
use crate::listen::{Listen, Tls};
use crate::sentry::Sentry;
use crate::success::Success;
use crate::upstream::{Collector, Timeouts, Upstream};

/// Everything that a gateway needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it was read, if it stands in a file.
    pub file: Option<PathBuf>,
    /// The beginning of the SHA-256 of the text that it was read from, in 16 hexadecimal digits.
    pub hash: String,
    /// The mode of classes that set none.
    pub mode: Mode,
    /// Where clients and operators come in.
    pub listen: Listen,
    /// What clients of `listen.https` are shown; there whenever `listen.https` is.
    pub tls: Option<Tls>,
    /// The application behind.
    pub upstream: Upstream,
    /// The policy that orders waiting requests, with its parameters.
    pub order: Settings,
    /// The engine's own options: limit, longest wait, sessions.
    pub engine: Options,
    /// Bodies of waiting requests.
    pub queue: Queue,
    /// Whose request it is.
    pub identify: Identify,
    /// How much requests get inside the application, if there are levels.
    pub levels: Option<Levels>,
    /// Against abuse.
    pub limits: Limits,
    /// What those are told who are refused.
    pub answers: Answers,
    /// Where one line per request goes.
    pub access_log: AccessLog,
    /// Who collects traces; only a build with the feature `traces` sends any.
    pub traces: Option<Collector>,
    /// Where what was learned is kept; nothing is kept if there is no place for it.
    pub state: Option<State>,
    /// The folder with results of the laboratory, for the console.
    pub results: Option<PathBuf>,
    /// The end of the process.
    pub stop: Stop,
    /// Who is told whose client has gone.
    pub sentry: Sentry,
    /// What is looked for, and what is held back.
    pub elephants: Elephants,
    /// The classes in the order of the file, `other` last; a class's index is its `ClassId`.
    pub classes: Vec<ClassConfig>,
    /// Method and path to class.
    pub classifier: Classifier,
}

/// Whether decisions are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Decide and record, change nothing.
    Observe,
    /// Do it.
    Enforce,
}

/// Whether requests of a class can be stopped while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Safe {
    /// Nobody has said so.
    No,
    /// They change nothing.
    ReadOnly,
}

impl Safe {
    /// The word for it in the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::ReadOnly => "read-only",
        }
    }
}

/// Bodies of waiting requests, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Read ahead of one request.
    pub body_buffer: usize,
    /// Of all together.
    pub body_buffer_total: usize,
    /// Whether files do not wait for a slot.
    pub skip_files: bool,
}

/// Who answers for a request without a proven session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Nobody.
    Session,
    /// Its peer address.
    Address,
}

/// Against abuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For the head of a request to arrive.
    pub header_timeout: Span,
    /// Fields in the head.
    pub max_headers: usize,
    /// Bytes of the head.
    pub max_header_bytes: usize,
    /// Bytes of path and query.
    pub max_uri_bytes: usize,
    /// Client connections at once.
    pub connections: usize,
    /// The same from one address, but for trusted proxies; 0 for as many as there can be.
    pub connections_per_address: usize,
    /// Bytes of a request's body.
    pub max_body_bytes: u64,
    /// Percent of `connections` that proven sessions keep.
    pub proven_reserve: u8,
    /// Bytes per second that a body must make on average, in either direction, after its first
    /// ten seconds; 0 for any.
    pub body_rate: u64,
    /// WebSocket connections and server-sent events at once; they hold no slot.
    pub streams: usize,
    /// Requests at once that hold no slot, as they are observed only or bypassed.
    pub observed: usize,
    /// Requests at once on one HTTP/2 connection.
    pub h2_streams: u32,
    /// How long a connection may be open with no request on it.
    pub idle_timeout: Span,
    /// Bytes that all clients together may make the gateway hold; `None` to find the number.
    pub memory: Option<u64>,
}

/// What those are told who are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// HTML for browsers, the contents of the file.
    pub page: Option<String>,
    /// Who is told everything.
    pub details: Details,
}

/// Who gets every parameter of `Proxy-Status`; everybody else gets a coarse token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// The hops of `listen.trusted_proxies`.
    Trusted,
    /// Everybody.
    All,
    /// Nobody.
    None,
}

/// Where one line per request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// To standard output.
    Stdout,
    /// Nowhere.
    Off,
    /// To a file.
    File(PathBuf),
}

/// Where what was learned is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The folder.
    pub directory: PathBuf,
    /// How much of it may be lost when the process is killed.
    pub save_every: Span,
}

/// The end of the process, by SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// How long running requests may go on once the listeners are closed.
    pub grace: Span,
    /// How long the listeners stay open while readiness already says no.
    pub delay: Span,
}

/// A class with what the gateway has to know about it beside the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// As the engine sees it.
    pub class: Class,
    /// Its patterns, as they stand in the file; none of `other`.
    pub patterns: Vec<String>,
    /// Whether decisions about it are carried out.
    pub mode: Mode,
    /// Of so many of a hundred visitors, if they are.
    pub percent: u8,
    /// An answer later than this counts as late.
    pub patience: Option<Span>,
    /// Of its requests, if it has one.
    pub level: Option<Level>,
    /// Only answers with this field count as successes; it says how much they bring.
    pub earns_header: Option<String>,
    /// The conditions on which an answer counts as a success.
    pub success: Success,
    /// Bytes of a request's body.
    pub max_body_bytes: u64,
    /// Those of `[upstream]`, but for what the class sets itself.
    pub timeouts: Timeouts,
    /// Its line in the file; `None` for an `other` that is not there.
    pub line: Option<usize>,
}

impl Mode {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

impl Charge {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Address => "address",
        }
    }
}

impl Details {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::All => "all",
            Self::None => "none",
        }
    }
}
