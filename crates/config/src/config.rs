//! The configuration, resolved: names are types, spans are spans, nothing is left to check.

use std::net::SocketAddr;
use std::path::PathBuf;

use bywash_engine::catalog::Settings;
use bywash_engine::classify::Classifier;
use bywash_engine::{Class, Options};
use bywash_units::Span;

/// Everything that a gateway needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The mode of classes that set none.
    pub mode: Mode,
    /// Where clients and operators come in.
    pub listen: Listen,
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
    /// Against abuse.
    pub limits: Limits,
    /// Where one line per request goes.
    pub access_log: AccessLog,
    /// How long running requests may go on after SIGTERM.
    pub grace: Span,
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

/// Where clients and operators come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// For clients.
    pub http: SocketAddr,
    /// For operators; a loopback address.
    pub admin: SocketAddr,
    /// Threads; 0 for one per core.
    pub workers: usize,
    /// What a half-closed connection means.
    pub half_close: HalfClose,
}

/// What it means that a client has shut down only its sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// It has left.
    Abort,
    /// It still waits for its answer.
    Allow,
}

/// The application behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Name or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Slots.
    pub limit: u32,
    /// How long a connection may take.
    pub connect_timeout: Span,
    /// How long until the first byte of the answer.
    pub response_timeout: Span,
}

/// Bodies of waiting requests, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Read ahead of one request.
    pub body_buffer: usize,
    /// Of all together.
    pub body_buffer_total: usize,
}

/// Whose request it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identify {
    /// Name of the session cookie, if there are sessions.
    pub session_cookie: Option<String>,
    /// Who answers for a request without a proven session.
    pub charge: Charge,
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

/// A class with what the gateway has to know about it beside the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// As the engine sees it.
    pub class: Class,
    /// Whether decisions about it are carried out.
    pub mode: Mode,
    /// An answer later than this counts as late.
    pub patience: Option<Span>,
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

impl HalfClose {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Allow => "allow",
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

impl Upstream {
    /// `host:port`, to connect to and for the `Host` field; an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        let (host, port) = (&self.host, self.port);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}
