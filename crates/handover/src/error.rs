//! Why a handover failed.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::head::MOST_STATE;
use crate::socket::Name;

/// Why the old process continues, or why the new one cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// There is more state than a successor accepts. No process was started.
    #[error("{length} bytes of state; at most {MOST_STATE} can be handed over")]
    StateTooLong {
        /// The length in bytes.
        length: u64,
    },
    /// Two sockets have the same name.
    #[error("two sockets are named {0}")]
    NamedTwice(Name),
    /// The program could not be started.
    #[error("cannot start {}: {source}", .program.display())]
    Start {
        /// The program as the command names it.
        program: OsString,
        /// The error of the system.
        source: io::Error,
    },
    /// The successor ended before it served.
    #[error("process {process} ended before it served: {status}")]
    Exited {
        /// The process ID, which another process may have by now.
        process: u32,
        /// The exit status.
        status: ExitStatus,
    },
    /// The successor closed the channel but did not end. It was killed.
    #[error("process {process} would not take over, and was killed")]
    Declined {
        /// The process ID, which another process may have by now.
        process: u32,
    },
    /// The successor did not serve in time. It was killed.
    #[error("process {process} did not serve within {patience:?}, and was killed")]
    TooSlow {
        /// The process ID, which another process may have by now.
        process: u32,
        /// The time limit.
        patience: Duration,
    },
    /// The caller called the handover off. The successor was killed.
    #[error("process {process} was called off")]
    CalledOff {
        /// The process ID, which another process may have by now.
        process: u32,
    },
    /// The two processes speak different versions of the protocol. This upgrade needs a stop and a
    /// start.
    #[error("the other process hands over by version {theirs}, this one by version {ours}")]
    OtherVersion {
        /// The version of this process.
        ours: u32,
        /// The version of the other process.
        theirs: u32,
    },
    /// The other process sent an invalid message.
    #[error("the other process is not understood: {0}")]
    Garbled(&'static str),
    /// This process was started as a successor, but there is no process that hands over.
    #[error("BYWASH_HANDOVER is set, but standard input is not the process that hands over")]
    NoPredecessor,
    /// A descriptor that was handed over is not a listening socket.
    #[error("the socket for {name} that was handed over: {source}")]
    NotListening {
        /// The name that the socket was sent with.
        name: Name,
        /// The fault of the socket.
        source: io::Error,
    },
    /// The connection between the two processes failed.
    #[error("the conversation broke off: {0}")]
    Broken(#[from] io::Error),
}
