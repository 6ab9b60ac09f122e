//! Enums whose names are values of labels. The metrics share them with other parts of the gateway.

use bywash_config::Level;
use bywash_tls::HandshakeFailure;

/// The reason why a connection ended before TLS or HTTP began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// The PROXY header of a hop that must send one is missing or malformed.
    ProxyHeader,
    /// The PROXY header did not arrive in time.
    Timeout,
    /// The client closed the connection before TLS or HTTP began.
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
    /// The handshake did not end in time.
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

/// The kind of frame flood for which an HTTP/2 connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Too many `RST_STREAM` frames: for streams that the client has just opened (CVE-2023-44487),
    /// for older streams, or for streams that are already reset.
    Reset,
    /// Frames by which a client makes the server reset streams (CVE-2019-9514, CVE-2025-8671).
    Provoked,
    /// A field block without an end (VU#421644).
    Continuation,
    /// A field block that takes too long to arrive.
    SlowList,
    /// HEADERS frames for streams that are already open.
    Headers,
    /// SETTINGS frames one after the other (CVE-2019-9515).
    Settings,
    /// PING frames one after the other (CVE-2019-9512).
    Ping,
    /// DATA frames without content (CVE-2019-9518).
    EmptyData,
    /// DATA frames with almost no content.
    SmallData,
    /// PRIORITY frames one after the other (CVE-2019-9513).
    Priority,
    /// `WINDOW_UPDATE` frames that open a window by almost nothing (CVE-2019-9511), or that are not
    /// needed.
    WindowUpdate,
    /// Frames that have no meaning for a server.
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

/// The reason why the name of an application's server did not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFailure {
    /// The name does not exist, or has no address.
    UnknownName,
    /// No name server has responded, or none could answer.
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

/// The reason why the JSON body of an answer could not be examined, so that the answer is
/// not a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The body is compressed.
    Compressed,
    /// The body is longer than the part that the gateway examines.
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

/// The statement of a request about its customer's level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CustomerLevel {
    #[default]
    Nothing,
    /// A trusted hop names this level.
    Level(Level),
    /// A trusted hop sends a value that is not a level, or more than one value.
    Unknown,
    /// A peer that is not a trusted hop names a level, which is ignored.
    Untrusted,
}

impl CustomerLevel {
    /// The values of the label in metrics, in the order of [`Self::number`].
    pub(crate) const NAMES: [&'static str; 3] = ["known", "unknown", "untrusted"];

    /// Returns the index of the label's value. Returns `None` for a request that names no level.
    pub(crate) const fn number(self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Level(_) => Some(0),
            Self::Unknown => Some(1),
            Self::Untrusted => Some(2),
        }
    }
}
