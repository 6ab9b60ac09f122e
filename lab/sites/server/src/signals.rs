//! The signals that end a program.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, SIGINT and SIGTERM, caught from the creation of this value on.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Catches the signals. Call it before a server reports that it listens, so that no signal
    /// finds the default handler.
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

    /// Waits for the first signal.
    pub async fn first(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
