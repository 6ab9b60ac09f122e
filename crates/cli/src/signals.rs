//! Signals, caught: to end, to reload, to make room for a successor.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From the moment this is made none of these signals ends the process by itself; it lasts for
/// good.
pub(crate) struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user: Signal,
}

/// What the process is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// To end, by the signal of this number.
    End(i32),
    /// SIGHUP: to read its configuration again.
    Reload,
    /// SIGUSR2: to start its successor.
    Upgrade,
}

impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let inside = runtime.enter();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        let user = signal(SignalKind::user_defined2())?;
        drop(inside);
        Ok(Self { runtime, terminate, interrupt, hangup, user })
    }

    /// Blocks until the process is told something, or for so long.
    pub(crate) fn wait_for(&mut self, limit: Duration) -> Option<Told> {
        let Self { runtime, terminate, interrupt, hangup, user } = self;
        let end = |kind: SignalKind| Some(Told::End(kind.as_raw_value()));
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => end(SignalKind::terminate()),
                _ = interrupt.recv() => end(SignalKind::interrupt()),
                _ = hangup.recv() => Some(Told::Reload),
                _ = user.recv() => Some(Told::Upgrade),
                () = tokio::time::sleep(limit) => None,
            }
        })
    }

    /// Whether the process has been told to end. Whatever else it has been told is left for
    /// [`wait_for`](Self::wait_for).
    pub(crate) fn is_told_to_end(&mut self) -> bool {
        let Self { runtime, terminate, interrupt, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                // In this order: yielding lets the runtime hear of signals, once.
                biased;
                _ = terminate.recv() => true,
                _ = interrupt.recv() => true,
                () = tokio::task::yield_now() => false,
            }
        })
    }

    /// Blocks until the process is told to end, and gives the exit code that shells expect of one
    /// that was: 128 and the number of the signal.
    pub(crate) fn wait(&mut self) -> i32 {
        const LONG: Duration = Duration::from_secs(3600);
        loop {
            if let Some(Told::End(signal)) = self.wait_for(LONG) {
                return 128 + signal;
            }
        }
    }
}
