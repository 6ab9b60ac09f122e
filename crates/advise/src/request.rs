//! A request as a line of a log describes it.

use bywash_units::{Time, TimeSpan};

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The time of its arrival, since 1970.
    pub began: Time,
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The host that the client named, if the line tells.
    pub host: Option<&'a str>,
    /// The client.
    pub client: Client,
    /// The outcome.
    pub end: End,
    /// How long it waited before it was processed, if the line tells.
    pub waited: Option<TimeSpan>,
    /// How long it was processed, if the line tells.
    pub service: Option<TimeSpan>,
}

/// A request that owns its text.
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

    /// Returns how long its client waited for it, if the line tells.
    pub(crate) fn took(&self) -> Option<TimeSpan> {
        match (self.waited, self.service) {
            (None, None) => None,
            (waited, service) => Some(waited.unwrap_or_default() + service.unwrap_or_default()),
        }
    }

    /// Returns the time at which it ended.
    pub fn ended(&self) -> Time {
        self.began + self.took().unwrap_or_default()
    }

    /// Returns whether its method is safe (RFC 9110 §9.2.1).
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "")
    }

    /// Returns whether it succeeded. A redirection counts if the method is unsafe.
    pub(crate) fn is_success(&self) -> bool {
        match self.end {
            End::Answered(status) => {
                (200..300).contains(&status) || (!self.is_safe() && (300..400).contains(&status))
            }
            End::Untold => true,
            End::Refused | End::Left | End::Failed => false,
        }
    }

    /// Returns whether it is of a robot.
    pub(crate) const fn is_of_robot(&self) -> bool {
        matches!(self.client, Client::Robot { .. })
    }

    /// Returns whether the requested resource exists.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.end, End::Answered(200..400) | End::Untold)
    }
}

/// The client of a request, by numbers that no client can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A client of a log without sessions.
    Known {
        /// The combination of address and browser.
        number: u64,
        /// The address.
        address: u64,
    },
    /// A client of a log without sessions that its user agent names as a robot.
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
    /// Returns a number that is the same for the same client.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Known { number, .. } | Self::Robot { number, .. } => number,
            Self::Session { .. } | Self::Stranger { .. } | Self::Untold => self.address(),
        }
    }

    /// Returns a number of its address; 0 if the line does not tell.
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
