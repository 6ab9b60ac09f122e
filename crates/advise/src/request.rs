//! A request as a line of a log describes it.

use bywash_units::{Time, TimeSpan};

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The time of arrival, as the time since 1970.
    pub began: Time,
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The host that the client named, if the line has it.
    pub host: Option<&'a str>,
    /// The client.
    pub client: Client,
    /// The outcome.
    pub end: End,
    /// The time between arrival and processing, if the line has it.
    pub waited: Option<TimeSpan>,
    /// The processing time, if the line has it.
    pub service: Option<TimeSpan>,
}

/// A [`Request`] that owns its text.
#[derive(Clone, Debug)]
pub struct Kept {
    method: Box<str>,
    target: Box<str>,
    host: Option<Box<str>>,
    /// The request without its text.
    rest: Request<'static>,
}

impl Kept {
    /// Returns the request.
    pub fn request(&self) -> Request<'_> {
        let host = self.host.as_deref();
        Request { method: &self.method, target: &self.target, host, ..self.rest }
    }
}

impl Request<'_> {
    /// Returns a copy of the request that owns its text.
    pub fn kept(&self) -> Kept {
        let rest = Request { method: "", target: "", host: None, ..*self };
        let host = self.host.map(Into::into);
        Kept { method: self.method.into(), target: self.target.into(), host, rest }
    }

    /// Returns the time from arrival to the end, if the line has any part of it.
    pub(crate) fn took(&self) -> Option<TimeSpan> {
        match (self.waited, self.service) {
            (None, None) => None,
            (waited, service) => Some(waited.unwrap_or_default() + service.unwrap_or_default()),
        }
    }

    /// Returns the time at which the request ended. It is the time of arrival if the duration is
    /// unknown.
    pub fn ended(&self) -> Time {
        self.began + self.took().unwrap_or_default()
    }

    /// Returns whether the method is safe (RFC 9110 §9.2.1). A line without a method counts as
    /// safe.
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "")
    }

    /// Returns whether the request succeeded. A redirection is a success only if the method is
    /// unsafe. An unknown outcome is a success.
    pub(crate) fn is_success(&self) -> bool {
        match self.end {
            End::Answered(status) => {
                (200..300).contains(&status) || (!self.is_safe() && (300..400).contains(&status))
            }
            End::Untold => true,
            End::Refused | End::Left | End::Failed => false,
        }
    }

    /// Returns whether a robot sent the request.
    pub(crate) const fn is_of_robot(&self) -> bool {
        matches!(self.client, Client::Robot { .. })
    }

    /// Returns whether the requested resource exists: the status is 200 to 399, or the outcome is
    /// unknown.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.end, End::Answered(200..400) | End::Untold)
    }
}

/// The client of a request. Numbers are hashes of names: equal for the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A client in a log without sessions.
    Known {
        /// The number of the combination of address and user agent.
        number: u64,
        /// The address.
        address: u64,
    },
    /// A robot, by its user agent, in a log without sessions.
    Robot {
        /// The combination of address and user agent.
        number: u64,
        /// The address.
        address: u64,
    },
    /// The client with this session.
    Session {
        /// The session.
        session: u64,
        /// The address.
        address: u64,
    },
    /// A client without a session, at this address.
    Stranger {
        /// The address.
        address: u64,
    },
    /// The line does not tell.
    Untold,
}

impl Client {
    /// Returns a number that is the same for the same client. A client of a log with sessions is
    /// identified by its address alone.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Known { number, .. } | Self::Robot { number, .. } => number,
            Self::Session { .. } | Self::Stranger { .. } | Self::Untold => self.address(),
        }
    }

    /// Returns the number of the client's address, or 0 if it is unknown.
    pub(crate) const fn address(self) -> u64 {
        match self {
            Self::Known { address, .. }
            | Self::Robot { address, .. }
            | Self::Session { address, .. }
            | Self::Stranger { address } => address,
            Self::Untold => 0,
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Answered with this status.
    Answered(u16),
    /// Refused before it was processed.
    Refused,
    /// Left by its client before the answer.
    Left,
    /// The server did not answer, or broke off its answer.
    Failed,
    /// The line does not tell.
    Untold,
}
