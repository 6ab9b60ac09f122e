//! The values of labels that the gateway's parts and the metrics share.

use bywash_config::Level;
use bywash_tls::HandshakeFailure;

/// The reason why a connection did not get as far as TLS or HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// The PROXY header of a hop that must send one is missing or malformed.
    ProxyHeader,
    /// The PROXY header took too long.
    Timeout,
    /// The client has left.
    Gone,
}

impl NotOpened {
    pub(crate) const ALL: [Self; 3] = [Self::ProxyHeader, Self::Timeout, Self::Gone];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ProxyHeader => "proxy_header",
            Self::Timeout => "timeout",
            Self::Gone => "gone",
        }
    }
}

/// The outcome of a TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Done,
    /// The handshake took too long.
    Timeout,
    Failed(HandshakeFailure),
}

impl Handshake {
    /// Returns the names of all outcomes, in the order of [`Handshake::number`].
    pub(crate) fn names() -> Vec<&'static str> {
        let failures = HandshakeFailure::ALL.map(HandshakeFailure::name);
        ["ok", "timeout"].into_iter().chain(failures).collect()
    }

    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Done => 0,
            Self::Timeout => 1,
            Self::Failed(failure) => 2 + failure as usize,
        }
    }
}

/// The flood of frames for which an HTTP/2 connection was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Streams opened and reset at once, or reset repeatedly (CVE-2023-44487).
    Reset,
    /// Frames that make the server reset the stream (CVE-2019-9514, CVE-2025-8671).
    Provoked,
    /// A field block without end (VU#421644).
    Continuation,
    /// A field block that takes too long to arrive.
    SlowList,
    /// HEADERS for streams that are open already.
    Headers,
    /// Settings changed all the time (CVE-2019-9515).
    Settings,
    /// PING without anything to measure (CVE-2019-9512).
    Ping,
    /// DATA without content (CVE-2019-9518).
    EmptyData,
    /// DATA with almost no content.
    SmallData,
    /// Streams reprioritised all the time (CVE-2019-9513).
    Priority,
    /// Windows opened by almost nothing (CVE-2019-9511), or without need.
    WindowUpdate,
    /// Frames that have no meaning here.
    Other,
}

impl Flood {
    /// All kinds, in the order of their discriminants.
    pub(crate) const ALL: [Self; 12] = [
        Self::Reset,
        Self::Provoked,
        Self::Continuation,
        Self::SlowList,
        Self::Headers,
        Self::Settings,
        Self::Ping,
        Self::EmptyData,
        Self::SmallData,
        Self::Priority,
        Self::WindowUpdate,
        Self::Other,
    ];

    /// Returns the name used in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Provoked => "provoked_reset",
            Self::Continuation => "continuation",
            Self::SlowList => "slow_list",
            Self::Headers => "headers",
            Self::Settings => "settings",
            Self::Ping => "ping",
            Self::EmptyData => "empty_data",
            Self::SmallData => "small_data",
            Self::Priority => "priority",
            Self::WindowUpdate => "window_update",
            Self::Other => "other",
        }
    }
}

/// The reason why a forwarding field of a trusted hop was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Both fields are present, and they name different clients.
    Differ,
    /// Only the field that is not authoritative is present.
    NotAuthoritative,
    /// `Forwarded` is authoritative, and one of its lines violates RFC 7239.
    Malformed,
}

impl Doubt {
    pub(crate) const ALL: [Self; 3] = [Self::Differ, Self::NotAuthoritative, Self::Malformed];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Differ => "differ",
            Self::NotAuthoritative => "not_authoritative",
            Self::Malformed => "malformed",
        }
    }
}

/// The reason why a server's name did not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFailure {
    /// There is no such name, or it has no address.
    UnknownName,
    /// No name server has responded, or none that could answer.
    Temporary,
    Other,
}

impl NameFailure {
    /// All names that [`NameFailure::name`] returns, in the order of the variants.
    pub(crate) const NAMES: [&str; 3] = ["unknown_name", "temporary", "other"];

    /// Returns the name used in the metrics and the log.
    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The reason why the JSON of an answer could not be read, so that the answer does not count as a
/// success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The body is compressed.
    Compressed,
    /// The body is longer than the part that the gateway reads.
    TooLong,
}

impl Unread {
    /// All reasons, in the order of their discriminants.
    pub(crate) const ALL: [Self; 2] = [Self::Compressed, Self::TooLong];

    /// Returns the name used in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Compressed => "compressed",
            Self::TooLong => "too_long",
        }
    }
}

/// The level that a request names for its customer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CustomerLevel {
    #[default]
    Nothing,
    /// A trusted hop names this level.
    Level(Level),
    /// A trusted hop sends something else than one level.
    Unknown,
    /// The sender is not a trusted hop.
    Untrusted,
}

impl CustomerLevel {
    /// The label values in metrics, in the order of [`Self::number`].
    pub(crate) const NAMES: [&'static str; 3] = ["known", "unknown", "untrusted"];

    /// The index of its label value; `None` if it is not counted.
    pub(crate) const fn number(self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Level(_) => Some(0),
            Self::Unknown => Some(1),
            Self::Untrusted => Some(2),
        }
    }
}
