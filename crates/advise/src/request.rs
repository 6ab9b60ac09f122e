//! A request as one line of a log describes it.

use bywash_units::{Time, TimeSpan};

/// A request of the log.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The time at which the request arrived, since 1970.
    pub began: Time,
    /// The method of the request.
    pub method: &'a str,
    /// The path and query of the request.
    pub target: &'a str,
    /// The host that the client named; `None` if the line does not have it.
    pub host: Option<&'a str>,
    /// The client that sent the request.
    pub client: Client,
    /// The user agent; `None` if the line does not have it.
    pub agent: Option<&'a str>,
    /// The outcome of the request.
    pub end: End,
    /// The time from arrival to the start of processing; `None` if the line does not have it.
    pub waited: Option<TimeSpan>,
    /// The time from the start of processing to the end; `None` if the line does not have it.
    pub service: Option<TimeSpan>,
}

/// A [`Request`] that owns its text.
#[derive(Clone, Debug)]
pub struct Kept {
    method: Box<str>,
    target: Box<str>,
    host: Option<Box<str>>,
    agent: Option<Box<str>>,
    /// The request with its text fields empty.
    rest: Request<'static>,
}

impl Kept {
    /// Returns the request, which borrows the kept text.
    pub fn request(&self) -> Request<'_> {
        let (host, agent) = (self.host.as_deref(), self.agent.as_deref());
        Request { method: &self.method, target: &self.target, host, agent, ..self.rest }
    }
}

impl Request<'_> {
    /// Returns a copy of the request that owns its text.
    pub fn kept(&self) -> Kept {
        let rest = Request { method: "", target: "", host: None, agent: None, ..*self };
        let [host, agent] = [self.host, self.agent].map(|text| text.map(Into::into));
        Kept { method: self.method.into(), target: self.target.into(), host, agent, rest }
    }

    /// Returns the time from arrival to the end. If the line has only the wait or only the service
    /// time, returns that time. Returns `None` if the line has neither.
    pub(crate) fn took(&self) -> Option<TimeSpan> {
        match (self.waited, self.service) {
            (None, None) => None,
            (waited, service) => Some(waited.unwrap_or_default() + service.unwrap_or_default()),
        }
    }

    /// Returns the time at which the request ended. If the duration is unknown, returns the time of
    /// arrival.
    pub fn ended(&self) -> Time {
        self.began + self.took().unwrap_or_default()
    }

    /// Returns whether the method is safe (RFC 9110 §9.2.1). A line without a method counts as
    /// safe.
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "")
    }

    /// Returns whether the request succeeded. A redirection counts as a success only if the method
    /// is unsafe. An unknown outcome counts as a success.
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

    /// Returns whether the requested resource exists: the status is from 200 to 399, or the outcome
    /// is unknown.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.end, End::Answered(200..400) | End::Untold)
    }
}

/// The client of a request. All numbers are hashes: equal texts have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A client that is not a robot, in a log without sessions.
    Known {
        /// The hash of the address and the user agent together.
        number: u64,
        /// The hash of the address.
        address: u64,
    },
    /// A robot, recognised by its user agent, in a log without sessions.
    Robot {
        /// The hash of the address and the user agent together.
        number: u64,
        /// The hash of the address.
        address: u64,
    },
    /// A client with a session, in a log with sessions.
    Session {
        /// The hash of the session.
        session: u64,
        /// The hash of the address.
        address: u64,
    },
    /// A client without a session, in a log with sessions.
    Stranger {
        /// The hash of the address.
        address: u64,
    },
    /// An unknown client: the line does not name it.
    Untold,
}

impl Client {
    /// Returns the number that identifies the client. Without sessions, the number is the hash of
    /// the address and the user agent. With sessions, it is the hash of the address alone.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Known { number, .. } | Self::Robot { number, .. } => number,
            Self::Session { .. } | Self::Stranger { .. } | Self::Untold => self.address(),
        }
    }

    /// Returns the hash of the client's address, or 0 if the address is unknown.
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
    /// The request was answered with this status.
    Answered(u16),
    /// The request was refused before it was processed.
    Refused,
    /// The client left before the answer.
    Left,
    /// The server did not answer, or broke off its answer.
    Failed,
    /// The outcome is unknown: the line does not name it.
    Untold,
}
