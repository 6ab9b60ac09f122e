//! The resolved listeners for clients and operators, and the certificates shown to clients.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::network::Network;
use crate::socket;

/// The listeners for clients and operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address of the listener for clients in clear text.
    pub http: SocketAddr,
    /// The address of the listener for clients over TLS; `None` if there is no such listener.
    pub https: Option<SocketAddr>,
    /// The address of the admin listener, for operators.
    pub admin: AdminAddress,
    /// The path of the file with the key that signs operators' tokens; `None` if there is none.
    /// Operators on a Unix socket need no token.
    pub operators_key: Option<PathBuf>,
    /// The number of worker threads; 0 is one per core.
    pub workers: usize,
    /// The meaning of a connection whose client has shut down its sending side.
    pub half_close: HalfClose,
    /// Whether clients may use HTTP/2: by ALPN on `https`, by prior knowledge on `http`.
    pub http2: bool,
    /// The networks of the peers whose connections must begin with a PROXY protocol header, version
    /// 1 or 2.
    pub proxy_protocol: Vec<Network>,
    /// The networks of the hops in front of the gateway whose `Forwarded` and `X-Forwarded-*`
    /// fields are trusted.
    pub trusted_proxies: Vec<Network>,
    /// The header field in which trusted hops name the client.
    pub forwarded: ForwardingField,
    /// The names, in lower case, of request fields that are passed on although applications may
    /// trust them.
    pub pass_fields: Vec<String>,
}

/// The address of the admin listener, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// A loopback address.
    Tcp(SocketAddr),
    /// The absolute path of a Unix socket, whose permissions control access.
    Unix(PathBuf),
}

/// The meaning of a connection whose client shuts down only its sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// The client has left, so its request is abandoned.
    Abort,
    /// The client still waits for its answer.
    Allow,
}

/// The header field in which a hop names the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingField {
    /// `X-Forwarded-For`, with `X-Forwarded-Proto`, `-Host` and `-Port`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The certificates shown to clients of `listen.https`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificates: at least one. The first is also shown for names that no certificate has,
    /// and to clients that send no name.
    pub certificates: Vec<Certificate>,
}

/// The PEM files of a certificate and its private key. Their contents are not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The file with the certificate and the intermediate certificates up to the root.
    pub chain: PathBuf,
    /// The file with the private key of the certificate.
    pub key: PathBuf,
}

impl ForwardingField {
    /// Returns the name used in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

impl HalfClose {
    /// Returns the name used in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Allow => "allow",
        }
    }
}

/// Parses `127.0.0.1:7070` or `unix:/run/bywash/admin.sock`. The error says why the text is
/// neither.
impl FromStr for AdminAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.strip_prefix(socket::PREFIX) {
            Some(path) => socket::path(path).map(Self::Unix),
            None => text.parse().map(Self::Tcp).map_err(|_| "it is not an IP address with a port"),
        }
    }
}

/// Writes the address as the configuration file has it.
impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for AdminAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}
