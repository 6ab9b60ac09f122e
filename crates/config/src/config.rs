//! The resolved configuration. Names have become types, durations are parsed, and every check has
//! passed.

use std::path::PathBuf;

use bywash_engine::catalog::Settings;
use bywash_engine::classify::{Classifier, strict};
use bywash_engine::{Class, ClassId, ClassSet, Options};
use bywash_units::TimeSpan;

use crate::agents::Agent;
use crate::elephants::Elephants;
use crate::fleet::Fleet;
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
    /// The path of the configuration file; `None` if it was not read from a file.
    pub file: Option<PathBuf>,
    /// The first 16 hexadecimal digits of the SHA-256 of the configuration text.
    pub hash: String,
    /// The mode of classes that set none of their own.
    pub mode: Mode,
    /// The listeners for clients and operators.
    pub listen: Listen,
    /// The certificates for clients of `listen.https`; always set when `listen.https` is.
    pub tls: Option<Tls>,
    /// The application servers.
    pub upstream: Upstream,
    /// The scheduling policy and its parameters.
    pub scheduler: Settings,
    /// The options of the engine: concurrency limit, longest wait, sessions.
    pub engine: Options,
    /// The buffering of the bodies of waiting requests.
    pub queue: Queue,
    /// How sessions and clients are recognised.
    pub identify: Identify,
    /// The automated agents that sign their requests.
    pub agents: Vec<Agent>,
    /// The service levels inside the application; `None` if none are defined.
    pub levels: Option<Levels>,
    /// The limits that protect the gateway against abusive clients.
    pub client_limits: ClientLimits,
    /// The content of the responses to refused requests.
    pub answers: Answers,
    /// The destination of the request log, which has one line per request.
    pub access_log: AccessLog,
    /// The collector of traces; `None` sends no traces. Only a build with the feature `traces`
    /// sends any.
    pub traces: Option<Collector>,
    /// The storage of learned state; `None` stores nothing on disk.
    pub state: Option<State>,
    /// The folder with results of the laboratory, shown in the console.
    pub results: Option<PathBuf>,
    /// The timing of the shutdown of the process.
    pub stop: Stop,
    /// The fleet that this gateway belongs to; `None` if it works alone.
    pub fleet: Option<Fleet>,
    /// The stop daemon, which is notified when clients leave.
    pub stopd: Stopd,
    /// The detection and throttling of expensive requests.
    pub elephants: Elephants,
    /// The classes in the order of the file, with `other` last. The index of a class is its
    /// `ClassId`.
    pub classes: Vec<ClassConfig>,
    /// The classifier, which maps a request to its class.
    pub classifier: Classifier,
}

impl Config {
    /// Returns the lowest-ranked of `classes`, or the default class if there are none. A request
    /// that matches several classes has the name and the rank of this one.
    pub fn lowest(&self, classes: ClassSet) -> ClassId {
        let lowest = strict::lowest(classes, |class| &self.classes[class.index()].class);
        lowest.unwrap_or_else(|| self.classifier.default_class())
    }
}

/// The buffering of the bodies of waiting requests. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The maximum number of bytes that are read ahead for one request.
    pub body_buffer: usize,
    /// The maximum number of bytes that are read ahead for all requests together.
    pub body_buffer_total: usize,
    /// Whether requests for files bypass the queue.
    pub skip_files: bool,
}

/// The limits that protect the gateway against abusive clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// The maximum time for the head of a request to arrive.
    pub header_timeout: TimeSpan,
    /// The maximum number of fields in the head of a request.
    pub max_headers: usize,
    /// The maximum size of the head of a request, in bytes.
    pub max_header_bytes: usize,
    /// The maximum length of path and query together, in bytes.
    pub max_uri_bytes: usize,
    /// The maximum number of concurrent client connections.
    pub connections: usize,
    /// The maximum number of concurrent connections from one address; 0 is unlimited. Trusted
    /// proxies are exempt.
    pub connections_per_address: usize,
    /// The maximum size of a request's body, in bytes.
    pub max_body_bytes: u64,
    /// The percentage of `connections` that is reserved for clients with proven sessions.
    pub proven_reserve: u8,
    /// The lowest average rate of a body in either direction, after its first ten seconds, in bytes
    /// per second. 0 accepts any rate.
    pub body_rate: u64,
    /// The maximum number of concurrent WebSocket connections and server-sent event streams. They
    /// hold no slot.
    pub streams: usize,
    /// The maximum number of concurrent requests without a slot: requests that are only observed,
    /// or that bypass the gateway's control.
    pub observed: usize,
    /// The maximum number of concurrent requests on one HTTP/2 connection.
    pub h2_streams: u32,
    /// The maximum time that a client connection may stay open without a request.
    pub idle_timeout: TimeSpan,
    /// The maximum number of bytes that all clients together may make the gateway hold. With
    /// `None`, the number is derived from the machine's memory.
    pub memory: Option<u64>,
}

/// The content of the responses to refused requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The text of the HTML page for browsers; `None` uses the built-in one.
    pub page: Option<String>,
    /// The clients that receive every parameter of `Proxy-Status`.
    pub details: Details,
}

/// The clients that receive every parameter of `Proxy-Status`. All other clients receive a coarse
/// token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// Only the hops in `listen.trusted_proxies` receive every parameter.
    Trusted,
    /// Every client receives every parameter.
    All,
    /// No client receives every parameter.
    None,
}

/// The destination of the request log, which has one line per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Standard output.
    Stdout,
    /// No request log is written.
    Off,
    /// The file at this path.
    File(PathBuf),
}

/// The storage of learned state on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The directory that the state is saved in.
    pub directory: PathBuf,
    /// The interval between saves. A process that is killed loses at most the state learned in one
    /// interval.
    pub save_every: TimeSpan,
}

/// The timing of the shutdown of the process by SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// How long running requests may continue after the listeners are closed.
    pub grace: TimeSpan,
    /// How long the listeners stay open after the gateway has become unready.
    pub delay: TimeSpan,
}

/// A class, with settings that the gateway needs in addition to those of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// The class as the engine defines it.
    pub class: Class,
    /// The patterns in the syntax of the file; empty for `other`.
    pub patterns: Vec<String>,
    /// Whether decisions about the class are enforced or only observed.
    pub mode: Mode,
    /// The percentage of clients for which decisions are enforced in mode `enforce`. For the others
    /// they are only observed.
    pub enforce_percent: u8,
    /// The time after which an answer counts as late; `None` if no answer does.
    pub patience: Option<TimeSpan>,
    /// The service level of the class's requests; `None` if the class sets none.
    pub level: Option<Level>,
    /// The response header field whose value is the revenue of the answer; `None` if there is none.
    /// An answer without this field is not a success.
    pub revenue_header: Option<String>,
    /// The conditions on which an answer counts as a success.
    pub success: Success,
    /// The maximum size of a request's body, in bytes.
    pub max_body_bytes: u64,
    /// The timeouts of the class: those of `[upstream]`, unless the class overrides them.
    pub timeouts: Timeouts,
    /// The line of the class in the file, from 1; `None` for an `other` that the file does not
    /// define.
    pub line: Option<usize>,
    /// Whether the class was in an earlier file, and is no longer in the present one.
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
