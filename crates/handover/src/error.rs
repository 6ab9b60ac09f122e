//! Why a handing over came to nothing.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::head::MOST_STATE;
use crate::socket::Name;

/// Why the old process goes on, or the new one cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// There is more state than a successor takes. Nothing was started.
    #[error("{length} bytes of state; at most {MOST_STATE} can be handed over")]
    StateTooLong {
        /// Bytes.
        length: u64,
    },
    /// Two sockets of the same name.
    #[error("two sockets are named {0}")]
    NamedTwice(Name),
    /// The program could not be started.
    #[error("cannot start {}: {source}", .program.display())]
    Start {
        /// As the command names it.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The successor ended before it served.
    #[error("process {process} ended before it served: {status}")]
    Exited {
        /// Its id, which may be another's by now.
        process: u32,
        /// How it ended.
        status: ExitStatus,
    },
    /// The successor broke off the conversation and lived on. It has been killed.
    #[error("process {process} would not take over, and was killed")]
    Declined {
        /// Its id, which may be another's by now.
        process: u32,
    },
    /// The successor did not serve in time. It has been killed.
    #[error("process {process} did not serve within {patience:?}, and was killed")]
    TooSlow {
        /// Its id, which may be another's by now.
        process: u32,
        /// What it was given.
        patience: Duration,
    },
    /// The caller has changed its mind. The successor has been killed.
    #[error("process {process} was called off")]
    CalledOff {
        /// Its id, which may be another's by now.
        process: u32,
    },
    /// The two processes speak different versions of the conversation: the program has to be
    /// stopped and started this once.
    #[error("the other process hands over by version {theirs}, this one by version {ours}")]
    OtherVersion {
        /// This process's.
        ours: u32,
        /// The other's.
        theirs: u32,
    },
    /// The other process says something that makes no sense.
    #[error("the other process is not understood: {0}")]
    Garbled(&'static str),
    /// This process was started as a successor, and nobody is there to hand over.
    #[error("BYWASH_HANDOVER is set, but standard input is not the process that hands over")]
    NoPredecessor,
    /// What was handed over is no socket to listen with.
    #[error("the socket for {name} that was handed over: {source}")]
    NotListening {
        /// What it was said to be.
        name: Name,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The operating system did not let the two talk.
    #[error("the conversation broke off: {0}")]
    Broken(#[from] io::Error),
}
