//! Where clients and operators come in, and what clients are shown there.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::network::Network;
use crate::socket;

/// Where clients and operators come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// For clients, in clear.
    pub http: SocketAddr,
    /// For clients, by TLS.
    pub https: Option<SocketAddr>,
    /// For operators.
    pub admin: AdminAddress,
    /// The file of the key that operators' tokens are signed with; on a unix socket nobody needs any.
    pub operators_key: Option<PathBuf>,
    /// Threads; 0 for one per core.
    pub workers: usize,
    /// What a half-closed connection means.
    pub half_close: HalfClose,
    /// Whether clients may speak HTTP/2: by ALPN on `https`, by prior knowledge on `http`.
    pub http2: bool,
    /// Peers whose connections must begin with a PROXY header, of version 1 or 2.
    pub proxy_protocol: Vec<Network>,
    /// Hops in front whose `Forwarded` and `X-Forwarded-*` are believed.
    pub trusted_proxies: Vec<Network>,
    /// The field in which those hops say who the client is.
    pub forwarded: ForwardingField,
    /// Names of fields, in lower case, that are passed on though applications may believe them.
    pub pass_fields: Vec<String>,
}

/// Where operators come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// A loopback address.
    Tcp(SocketAddr),
    /// A socket in the file system, whose permissions decide; an absolute path.
    Unix(PathBuf),
}

/// What it means that a client has shut down only its sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// It has left.
    Abort,
    /// It still waits for its answer.
    Allow,
}

/// The field in which a hop says who the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingField {
    /// `X-Forwarded-For`, with `X-Forwarded-Proto`, `-Host` and `-Port`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// What clients of `listen.https` are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// At least one; the first is for names that are in none, and for clients that send none.
    pub certificates: Vec<Certificate>,
}

/// Two files that belong together, both PEM. Nobody has looked into them yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate and those between it and the root.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl ForwardingField {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
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

/// `127.0.0.1:7070` or `unix:/run/bywash/admin.sock`; the error says why it is neither.
impl FromStr for AdminAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.strip_prefix(socket::PREFIX) {
            Some(path) => socket::path(path).map(Self::Unix),
            None => text.parse().map(Self::Tcp).map_err(|_| "it is no IP address with a port"),
        }
    }
}

/// As it stands in the file.
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
