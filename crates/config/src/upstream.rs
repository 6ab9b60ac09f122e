//! The settings of the application: its servers, how they are reached and how their health is
//! judged.

use std::fmt;
use std::path::PathBuf;

use bywash_units::TimeSpan;

/// The application behind the gateway, with its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The servers: at least one, without duplicates. All servers share one queue.
    pub servers: Vec<Server>,
    /// The maximum number of slots of all servers together, at any time. Each slot may need a
    /// connection.
    pub limit: u32,
    /// The maximum number of idle connections that are each reserved for one client connection,
    /// over all worker threads.
    pub pinned_connections: usize,
    /// The timeouts of classes that set none of their own.
    pub timeouts: Timeouts,
    /// Whether the application ignores the case of paths; `None` if the file does not declare it.
    pub ignore_case: Option<bool>,
    /// Whether the application notices that the client of a running request has left.
    pub departures: Departures,
    /// How long an idle connection to a server is kept.
    pub keep_alive: TimeSpan,
    /// How often the addresses of servers with a host name are resolved.
    pub resolve_every: TimeSpan,
    /// The TLS settings for `https` servers.
    pub tls: UpstreamTls,
    /// The rules for when a server receives no requests, and when it receives them again.
    pub health: Health,
}

/// The way in which the gateway knows whether the application notices departures. A departure means
/// here that the client of a running request leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// The gateway finds out at each departure whether the server closes the connection. A server
    /// that notices departures does.
    Auto,
    /// The application stops work on a request when its connection is closed.
    Noticed,
    /// The application continues to work until its answer begins.
    Unnoticed,
}

impl Departures {
    /// Returns the name used in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Noticed => "noticed",
            Self::Unnoticed => "unnoticed",
        }
    }
}

/// One server of the application: its protocol and its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// The protocol that the server speaks.
    pub scheme: Scheme,
    /// The address that the server listens on.
    pub endpoint: Endpoint,
}

/// The protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP/1.1 in clear text.
    Http,
    /// HTTP/2 in clear text, with prior knowledge (RFC 9113 §3.3).
    H2c,
    /// HTTP/2 or HTTP/1.1 over TLS, chosen by ALPN.
    Https,
}

/// The address that a server listens on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A TCP address.
    Tcp {
        /// The host name in lower case, or the IP address. An IPv6 address has no brackets.
        host: String,
        /// The TCP port.
        port: u16,
    },
    /// The absolute path of a Unix socket. The scheme is then `Http`.
    Unix(PathBuf),
}

/// How an `https` server and the gateway authenticate each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The PEM file of trusted root certificates; `None` uses those of the system.
    pub ca: Option<PathBuf>,
    /// The name that the server's certificate must have and that is sent as SNI; `None` uses the
    /// host of the server's URL.
    pub name: Option<String>,
    /// The PEM file of the gateway's own certificate; `None` if the gateway shows none. It is set
    /// together with `key`.
    pub certificate: Option<PathBuf>,
    /// The PEM file of the private key of the gateway's own certificate.
    pub key: Option<PathBuf>,
}

/// The rules for when a server receives no requests, and when it receives them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The path of the probe; `None` sends no probes. Then only answers to requests count.
    pub path: Option<String>,
    /// The interval between two probes of a server.
    pub interval: TimeSpan,
    /// The time within which a server must answer a probe.
    pub timeout: TimeSpan,
    /// The number of consecutive good answers to probes that bring a server back.
    pub rise: u32,
    /// The number of consecutive bad answers to probes that take a server out.
    pub fall: u32,
    /// The number of consecutive failed requests that eject a server.
    pub eject_after: u32,
    /// The percentage of errors among recent answers that ejects a server, if the other servers
    /// have far fewer. 0 never ejects.
    pub eject_share: u32,
    /// The time for which failed requests eject a server.
    pub eject_for: TimeSpan,
    /// The time for which a server that is back receives less than its share of requests; zero
    /// disables this.
    pub slow_start: TimeSpan,
}

/// The timeouts of requests to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The maximum time to open a connection, TLS handshake included.
    pub connect: TimeSpan,
    /// The maximum time until the first byte of the answer.
    pub response: TimeSpan,
    /// The maximum time between two bytes of the answer.
    pub idle: TimeSpan,
    /// The maximum time from getting the slot to the last byte of the answer.
    pub total: TimeSpan,
}

impl Timeouts {
    /// Returns the shorter of the two values of each timeout.
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

/// The address of the trace collector: `http://HOST:PORT` of an OTLP collector that accepts HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// The host name in lower case, or the IP address. An IPv6 address has no brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Scheme {
    /// Returns the scheme as it is written before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::H2c => "h2c",
            Self::Https => "https",
        }
    }

    /// Returns the default port of the scheme, for a URL that names none.
    pub const fn port(self) -> u16 {
        match self {
            Self::Http | Self::H2c => 80,
            Self::Https => 443,
        }
    }
}

impl Server {
    /// Returns `host:port` for the `Host` field; `localhost` for a Unix socket.
    pub fn authority(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { host, port } => authority(host, *port),
            Endpoint::Unix(_) => "localhost".to_string(),
        }
    }
}

/// Writes the server as the configuration file has it, always with the port.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp { .. } => write!(f, "{}://{}", self.scheme.name(), self.authority()),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Collector {
    /// Returns `host:port`, with an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

/// Returns `host:port`, with an IPv6 address in brackets.
fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
