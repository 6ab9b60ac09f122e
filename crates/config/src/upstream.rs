//! The application behind: its servers, how they are reached and how their health is judged.

use std::fmt;
use std::path::PathBuf;

use bywash_units::Span;

/// The application behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Where it listens; at least one, none twice. One queue stands before all of them.
    pub servers: Vec<Server>,
    /// The most slots that all servers together can ever have: what connections must suffice for.
    pub limit: u32,
    /// Idle connections that are kept for one client connection each, of all workers.
    pub pinned_connections: usize,
    /// For requests of classes that set none.
    pub timeouts: Timeouts,
    /// Whether paths that differ in case only are the same to it; `None` if nothing is said.
    pub ignore_case: Option<bool>,
    /// Whether it notices that the client of a request it works on has gone.
    pub departures: Departures,
    /// How long an idle connection to a server is kept.
    pub keep_alive: Span,
    /// How often the addresses of servers that are given by name are looked up.
    pub resolve_every: Span,
    /// For the servers that are reached by `https`.
    pub tls: UpstreamTls,
    /// When a server gets no requests, and when it gets some again.
    pub health: Health,
}

/// Whether the application notices that the client of a request it works on has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// It shows at each departure: a server that notices closes the connection.
    Auto,
    /// It stops when its connection is closed.
    Noticed,
    /// It works on until its answer begins.
    Unnoticed,
}

impl Departures {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Noticed => "noticed",
            Self::Unnoticed => "unnoticed",
        }
    }
}

/// One server of the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// What is spoken with it.
    pub scheme: Scheme,
    /// Where it listens.
    pub endpoint: Endpoint,
}

/// What is spoken with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP/1.1 in clear.
    Http,
    /// HTTP/2 in clear, with prior knowledge (RFC 9113 §3.3).
    H2c,
    /// TLS; by ALPN HTTP/2 or HTTP/1.1.
    Https,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// On the network.
    Tcp {
        /// Name in lower case, or address; an IPv6 address without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// On a socket in the file system; an absolute path. The scheme is then `Http`.
    Unix(PathBuf),
}

/// How a server that is reached by `https` proves itself, and how we do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// PEM file of the roots that are believed; the system's if none.
    pub ca: Option<PathBuf>,
    /// The name that the certificate must have, and that is asked for (SNI); the host of the
    /// server's URL if none.
    pub name: Option<String>,
    /// PEM file of our own certificate; there together with `key`.
    pub certificate: Option<PathBuf>,
    /// PEM file of its private key.
    pub key: Option<PathBuf>,
}

/// When a server gets no requests, and when it gets some again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What is asked for; without it nothing is, and only the answers to requests count.
    pub path: Option<String>,
    /// From one question to the next.
    pub interval: Span,
    /// How long an answer may take.
    pub timeout: Span,
    /// Good answers in a row that bring a server back.
    pub rise: u32,
    /// Bad answers in a row that take it out.
    pub fall: u32,
    /// Failed requests in a row that take it out.
    pub eject_after: u32,
    /// Percentage of recent answers that are errors and take it out, if the others have far fewer; 0: never.
    pub eject_share: u32,
    /// For how long failed requests take it out.
    pub eject_for: Span,
    /// How long a server that is back gets less than its part; zero for its whole part at once.
    pub slow_start: Span,
}

/// How long a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, TLS included.
    pub connect: Span,
    /// Until the first byte of the answer.
    pub response: Span,
    /// Between two bytes of the answer.
    pub idle: Span,
    /// From the slot to the last byte of the answer.
    pub total: Span,
}

impl Timeouts {
    /// Of each the shorter one.
    #[must_use]
    pub fn shorter(self, other: Self) -> Self {
        Self {
            connect: self.connect.min(other.connect),
            response: self.response.min(other.response),
            idle: self.idle.min(other.idle),
            total: self.total.min(other.total),
        }
    }
}

/// Who collects traces: `http://HOST:PORT` of an OTLP collector that takes HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Name in lower case, or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Scheme {
    /// As it stands before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::H2c => "h2c",
            Self::Https => "https",
        }
    }

    /// The port of a URL that names none.
    pub const fn port(self) -> u16 {
        match self {
            Self::Http | Self::H2c => 80,
            Self::Https => 443,
        }
    }
}

impl Server {
    /// `host:port`, for the `Host` field; a socket in the file system is `localhost`.
    pub fn authority(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { host, port } => authority(host, *port),
            Endpoint::Unix(_) => "localhost".to_string(),
        }
    }
}

/// As it stands in the file, always with the port.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp { .. } => write!(f, "{}://{}", self.scheme.name(), self.authority()),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Collector {
    /// `host:port`.
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

/// An IPv6 address stands in brackets there.
fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
