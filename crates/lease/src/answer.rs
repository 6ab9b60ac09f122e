//! What the stop daemon says.

use std::fmt;

use crate::message::Reason;
use crate::name::RequestId;

/// An answer; its line begins with the number of the message, or with 0 if nobody asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done: the lease holds, or the connection may be lent to another.
    Done,
    /// A lease that does not hold: its request has been stopped, and nothing shall begin for it.
    Stopped(Reason),
    /// What became of a stop at first sight.
    Cancelled {
        /// Statements that were cancelled; where the daemon only observes, that would have been.
        cancelled: u32,
        /// Statements of the request that were not: they may write, or the budget is used up, or the database
        /// refused or was not there.
        spared: u32,
    },
    /// The holder of a lease of `self` is told to stop.
    Told {
        /// What for.
        request: RequestId,
        /// Why.
        reason: Reason,
        /// What it leased.
        connection: u64,
    },
    /// It is not done.
    Refused(Fault, String),
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It was no message.
    Malformed,
    /// Whoever says it may not.
    Forbidden,
    /// No such database is configured.
    UnknownDatabase,
    /// The connection is leased to somebody else; neither lease holds now. Close it.
    Taken,
    /// There are too many leases.
    Full,
    /// There is no such lease, or it has ended by itself.
    NotLeased,
    /// It came when it was too late.
    Late,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Forbidden,
        Self::UnknownDatabase,
        Self::Taken,
        Self::Full,
        Self::NotLeased,
        Self::Late,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forbidden => "forbidden",
            Self::UnknownDatabase => "unknown_database",
            Self::Taken => "taken",
            Self::Full => "full",
            Self::NotLeased => "not_leased",
            Self::Late => "late",
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("OK"),
            Self::Stopped(reason) => write!(f, "STOPPED {}", reason.name()),
            Self::Cancelled { cancelled, spared } => {
                write!(f, "OK cancelled={cancelled} spared={spared}")
            }
            Self::Told { request, reason, connection } => {
                write!(f, "STOPPED {request} {} {connection}", reason.name())
            }
            Self::Refused(fault, why) => write!(f, "ERR {} {why}", fault.name()),
        }
    }
}
