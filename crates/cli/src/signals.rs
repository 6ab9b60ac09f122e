//! Waiting for SIGTERM or SIGINT.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Blocks until the process is told to end.
pub(crate) fn wait_for_end() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(end())
}

async fn end() -> io::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = term.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
