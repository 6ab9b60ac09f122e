//! SIGTERM and SIGINT, caught.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From the moment this is made no signal ends the process by itself; it lasts for good.
pub(crate) struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let inside = runtime.enter();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        drop(inside);
        Ok(Self { runtime, terminate, interrupt })
    }

    /// Blocks until the process is told to end, and gives the exit code that shells expect of one
    /// that was: 128 and the number of the signal.
    pub(crate) fn wait(&mut self) -> i32 {
        let Self { runtime, terminate, interrupt } = self;
        let kind = runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => SignalKind::terminate(),
                _ = interrupt.recv() => SignalKind::interrupt(),
            }
        });
        128 + kind.as_raw_value()
    }
}
