//! The signals that the process catches: to end, to reload, and to start a successor.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The caught signals. From the creation of this value until the process exits, none of these
/// signals has its default effect.
pub struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user: Signal,
}

/// A request to the process, sent as a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM or SIGINT: end the process. The number is that of the signal.
    End(i32),
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGUSR2: start a successor.
    Upgrade,
}

impl Signals {
    /// Installs the handlers of the signals.
    pub fn catch() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let inside = runtime.enter();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        let user = signal(SignalKind::user_defined2())?;
        drop(inside);
        Ok(Self { runtime, terminate, interrupt, hangup, user })
    }

    /// Blocks until a signal arrives, and returns the request. Returns `None` if the time `limit`
    /// passes first.
    pub fn wait_for(&mut self, limit: Duration) -> Option<SignalRequest> {
        let Self { runtime, terminate, interrupt, hangup, user } = self;
        let end = |kind: SignalKind| Some(SignalRequest::End(kind.as_raw_value()));
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => end(SignalKind::terminate()),
                _ = interrupt.recv() => end(SignalKind::interrupt()),
                _ = hangup.recv() => Some(SignalRequest::Reload),
                _ = user.recv() => Some(SignalRequest::Upgrade),
                () = tokio::time::sleep(limit) => None,
            }
        })
    }

    /// Returns whether a signal to end has arrived, without blocking. Other signals stay pending
    /// for [`wait_for`](Self::wait_for).
    pub fn end_requested(&mut self) -> bool {
        let Self { runtime, terminate, interrupt, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                // The branches are polled in this order. The yield is not ready at first. So the
                // runtime receives pending signals before the branches are polled again.
                biased;
                _ = terminate.recv() => true,
                _ = interrupt.recv() => true,
                () = tokio::task::yield_now() => false,
            }
        })
    }

    /// Blocks until a signal to end arrives. Returns the exit code that shells expect of a process
    /// that a signal ended: 128 plus the number of the signal.
    pub fn wait(&mut self) -> i32 {
        const LONG: Duration = Duration::from_secs(3600);
        loop {
            if let Some(SignalRequest::End(signal)) = self.wait_for(LONG) {
                return 128 + signal;
            }
        }
    }
}
