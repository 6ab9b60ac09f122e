//! The errors of a handover, and the limit that one of them names.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::socket::Name;

/// The maximum number of bytes of state that can be handed over.
pub const MOST_STATE: u64 = 64 << 20;

/// The reason why the old process continues, or why the new one cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// There is more state than a successor accepts. No process was started.
    #[error("the state has {length} bytes; at most {MOST_STATE} can be handed over")]
    StateTooLong {
        /// The length of the state in bytes.
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
        /// The error of the operating system.
        source: io::Error,
    },
    /// The successor ended before it served.
    #[error("process {process} ended before it served: {status}")]
    Exited {
        /// The ID of the process that ended. The system may have given it to another process
        /// meanwhile.
        process: u32,
        /// The exit status of the process that ended.
        status: ExitStatus,
    },
    /// The successor closed the channel but did not end. It was killed.
    #[error("process {process} did not take over, and was killed")]
    Declined {
        /// The ID of the killed process. The system may have given it to another process meanwhile.
        process: u32,
    },
    /// The successor did not serve in time. It was killed.
    #[error("process {process} did not serve within {patience:?}, and was killed")]
    TooSlow {
        /// The ID of the killed process. The system may have given it to another process meanwhile.
        process: u32,
        /// The time within which the successor had to serve.
        patience: Duration,
    },
    /// The caller called the handover off. The successor was killed.
    #[error("the handover to process {process} was called off, and the process was killed")]
    CalledOff {
        /// The ID of the killed process. The system may have given it to another process meanwhile.
        process: u32,
    },
    /// The two processes speak different versions of the protocol. This upgrade needs a stop and a
    /// start.
    #[error(
        "the other process uses version {theirs} of the handover protocol, this one version \
         {ours}: stop the old process, then start the new one"
    )]
    OtherVersion {
        /// The version that this process speaks.
        ours: u32,
        /// The version that the other process speaks.
        theirs: u32,
    },
    /// The other process sent an invalid message.
    #[error("the other process sent an invalid message: {0}")]
    Garbled(&'static str),
    /// The environment says that this process is a successor, but no process hands over to it.
    #[error("BYWASH_HANDOVER is set, but standard input leads to no process that hands over")]
    NoPredecessor,
    /// A descriptor that was handed over is not a listening socket.
    #[error("the socket for {name} that was handed over cannot be used: {source}")]
    NotListening {
        /// The name with which the socket was sent.
        name: Name,
        /// The reason why the descriptor cannot be used.
        source: io::Error,
    },
    /// The connection between the two processes failed.
    #[error("the connection to the other process failed: {0}")]
    Broken(#[from] io::Error),
}
