//! The signals that end a program.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals SIGINT and SIGTERM, which are caught while this value exists.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to catch the signals. Call this function before a server reports that it listens, so
    /// that no signal reaches the default handler.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not let the program wait for signals.
    pub fn caught(runtime: &Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the first of the signals.
    pub async fn first(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
