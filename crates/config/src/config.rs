//! The resolved configuration: names have become types, durations are parsed, and every check has
//! passed.

use std::path::PathBuf;

use bywash_engine::catalog::Settings;
use bywash_engine::classify::{Classifier, strict};
use bywash_engine::{Class, ClassId, ClassSet, Options};
use bywash_units::TimeSpan;

use crate::elephants::Elephants;
use crate::identify::Identify;
use crate::levels::{Level, Levels};
use crate::listen::{Listen, Tls};
use crate::mode::Mode;
use crate::stopd::Stopd;
use crate::success::Success;
use crate::upstream::{Collector, Timeouts, Upstream};

/// The complete configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The path of the file that it was read from, if any.
    pub file: Option<PathBuf>,
    /// The first 16 hexadecimal digits of the SHA-256 of the configuration text.
    pub hash: String,
    /// The mode of classes that set none.
    pub mode: Mode,
    /// Listeners for clients and operators.
    pub listen: Listen,
    /// Certificates for clients of `listen.https`; always set when `listen.https` is.
    pub tls: Option<Tls>,
    /// The application servers.
    pub upstream: Upstream,
    /// The scheduler and its parameters.
    pub scheduler: Settings,
    /// Options of the engine: concurrency limit, longest wait, sessions.
    pub engine: Options,
    /// Buffering of the bodies of waiting requests.
    pub queue: Queue,
    /// How sessions and clients are recognised.
    pub identify: Identify,
    /// Service levels inside the application, if any are defined.
    pub levels: Option<Levels>,
    /// Limits against abusive clients.
    pub client_limits: ClientLimits,
    /// The content of refusals.
    pub answers: Answers,
    /// Destination of the request log, one line per request.
    pub access_log: AccessLog,
    /// The collector of traces. Only a build with the feature `traces` sends any.
    pub traces: Option<Collector>,
    /// The storage of learned state; `None` stores nothing.
    pub state: Option<State>,
    /// The folder with results of the laboratory, shown in the console.
    pub results: Option<PathBuf>,
    /// Shutdown of the process.
    pub stop: Stop,
    /// The stop daemon, which is notified when clients leave.
    pub stopd: Stopd,
    /// Detection and throttling of expensive requests.
    pub elephants: Elephants,
    /// The classes in the order of the file, `other` last. The index of a class is its `ClassId`.
    pub classes: Vec<ClassConfig>,
    /// Maps method and path to a class.
    pub classifier: Classifier,
}

impl Config {
    /// Returns the class by which a request of several classes is named and ranked: the lowest.
    pub fn lowest(&self, classes: ClassSet) -> ClassId {
        let lowest = strict::lowest(classes, |class| &self.classes[class.index()].class);
        lowest.unwrap_or_else(|| self.classifier.default_class())
    }
}

/// Buffering of the bodies of waiting requests, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The most that is read ahead for one request.
    pub body_buffer: usize,
    /// The most that is read ahead for all requests together.
    pub body_buffer_total: usize,
    /// Whether requests for files bypass the queue.
    pub skip_files: bool,
}

/// Limits against abusive clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Time for the head of a request to arrive.
    pub header_timeout: TimeSpan,
    /// The most fields in the head.
    pub max_headers: usize,
    /// The most bytes of the head.
    pub max_header_bytes: usize,
    /// The most bytes of path and query.
    pub max_uri_bytes: usize,
    /// The most concurrent client connections.
    pub connections: usize,
    /// The most concurrent connections from one address; 0 is unlimited. Trusted proxies are
    /// exempt.
    pub connections_per_address: usize,
    /// The most bytes of a request's body.
    pub max_body_bytes: u64,
    /// The percentage of `connections` that is reserved for clients with proven sessions.
    pub proven_reserve: u8,
    /// The lowest average rate of a body in either direction after its first ten seconds, in bytes
    /// per second; 0 accepts any rate.
    pub body_rate: u64,
    /// The most concurrent WebSocket connections and server-sent event streams. They hold no slot.
    pub streams: usize,
    /// The most concurrent requests without a slot, that is requests that are only observed or that
    /// bypass the gateway's control.
    pub observed: usize,
    /// The most concurrent requests on one HTTP/2 connection.
    pub h2_streams: u32,
    /// How long a client connection may stay open without a request.
    pub idle_timeout: TimeSpan,
    /// The most bytes that all clients together may make the gateway hold; `None` derives the
    /// number from the machine.
    pub memory: Option<u64>,
}

/// The content of refusals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The HTML page for browsers: the contents of the file.
    pub page: Option<String>,
    /// The clients that receive every detail.
    pub details: Details,
}

/// The clients that receive every parameter of `Proxy-Status`. The others receive a coarse token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// The hops in `listen.trusted_proxies`.
    Trusted,
    /// Every client.
    All,
    /// No client.
    None,
}

/// Destination of the request log, one line per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Standard output.
    Stdout,
    /// No log.
    Off,
    /// A file.
    File(PathBuf),
}

/// Storage of learned state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The directory.
    pub directory: PathBuf,
    /// The interval between saves. A killed process loses at most this much.
    pub save_every: TimeSpan,
}

/// Shutdown of the process by SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// How long running requests may continue after the listeners are closed.
    pub grace: TimeSpan,
    /// How long the listeners stay open after readiness has turned negative.
    pub delay: TimeSpan,
}

/// A class, with the settings that the gateway needs in addition to the engine's.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// The class as the engine defines it.
    pub class: Class,
    /// The patterns as the file has them; empty for `other`.
    pub patterns: Vec<String>,
    /// Whether decisions about the class are enforced.
    pub mode: Mode,
    /// The percentage of clients for which decisions are enforced in mode `enforce`.
    pub enforce_percent: u8,
    /// An answer later than this counts as late.
    pub patience: Option<TimeSpan>,
    /// The service level of its requests, if it has one.
    pub level: Option<Level>,
    /// Only answers with this field count as successes. Its value is the revenue of the success.
    pub revenue_header: Option<String>,
    /// The conditions on which an answer counts as a success.
    pub success: Success,
    /// The most bytes of a request's body.
    pub max_body_bytes: u64,
    /// The timeouts of `[upstream]`, with those that the class overrides.
    pub timeouts: Timeouts,
    /// The line of the class in the file; `None` for an `other` that the file does not define.
    pub line: Option<usize>,
    /// Whether an earlier file had the class and the present one does not.
    pub is_removed: bool,
}

impl Details {
    /// Returns the name used in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::All => "all",
            Self::None => "none",
        }
    }
}
