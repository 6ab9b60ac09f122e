//! Waiting for SIGTERM or SIGINT.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// Blocks until the process is told to end.
pub(crate) fn wait_for_end() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(end())
}

/// A flag that is raised when the process is told to end.
pub(crate) fn end_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if wait_for_end().is_ok() {
            raised.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(flag)
}

async fn end() -> io::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = term.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
