//! A request as a line of a log tells of it.

use bywash_units::{Span, Time};

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// When it came, since 1970.
    pub began: Time,
    /// Its method.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Who asked.
    pub client: Client,
    /// How it ended.
    pub end: End,
    /// How long it waited before it was worked on, if the line tells.
    pub waited: Option<Span>,
    /// How long it was worked on, if the line tells.
    pub service: Option<Span>,
}

/// A request that outlives its line.
#[derive(Clone, Debug)]
pub struct Kept {
    method: Box<str>,
    target: Box<str>,
    /// The same without words.
    rest: Request<'static>,
}

impl Kept {
    /// What was kept.
    pub fn request(&self) -> Request<'_> {
        Request { method: &self.method, target: &self.target, ..self.rest }
    }
}

impl Request<'_> {
    /// The same, kept.
    pub fn kept(&self) -> Kept {
        let rest = Request { method: "", target: "", ..*self };
        Kept { method: self.method.into(), target: self.target.into(), rest }
    }

    /// How long its client waited for it, if the line tells anything of that.
    pub(crate) fn took(&self) -> Option<Span> {
        match (self.waited, self.service) {
            (None, None) => None,
            (waited, service) => Some(waited.unwrap_or_default() + service.unwrap_or_default()),
        }
    }

    /// When it was over.
    pub fn ended(&self) -> Time {
        self.began + self.took().unwrap_or_default()
    }

    /// Whether its method asks for nothing to be done (RFC 9110 §9.2.1).
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "")
    }

    /// Whether it was answered as it was meant to be: a redirection counts where something was to be done.
    pub(crate) fn is_success(&self) -> bool {
        match self.end {
            End::Answered(status) => {
                (200..300).contains(&status) || (!self.is_safe() && (300..400).contains(&status))
            }
            End::Untold => true,
            End::Refused | End::Left | End::Failed => false,
        }
    }

    /// Whether there is such a thing as it asked for.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.end, End::Answered(200..400) | End::Untold)
    }
}

/// Who asked, by numbers that nobody can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Whoever has this number, an address and a browser.
    Known(u64),
    /// Whoever has this session.
    Session {
        /// The session.
        session: u64,
        /// Her address.
        address: u64,
    },
    /// Somebody without a session, at this address.
    Stranger {
        /// The address.
        address: u64,
    },
    /// The line does not tell.
    Untold,
}

impl Client {
    /// Something that is the same for the same one.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Known(number) => number,
            Self::Session { address, .. } | Self::Stranger { address } => address,
            Self::Untold => 0,
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was answered, with this status.
    Answered(u16),
    /// It was refused before it was worked on.
    Refused,
    /// Its client had left before.
    Left,
    /// Whoever should have answered it did not, or broke off.
    Failed,
    /// The line does not tell.
    Untold,
}
