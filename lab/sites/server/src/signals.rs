//! The signals that end a program.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both, caught from the moment that this is made.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// To be made before a server says that it listens, so that no signal finds the default handler.
    ///
    /// # Errors
    ///
    /// If the operating system lets nobody wait for signals.
    pub fn caught(runtime: &Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The first of them.
    pub async fn first(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
