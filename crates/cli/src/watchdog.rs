//! Sends heartbeats to the supervisor's watchdog.
//!
//! The heartbeats have a thread of their own, which only checks that the workers are alive. The
//! main thread cannot do it, because it reads files, possibly from a disk that does not respond. A
//! blocked main thread must not end a gateway that still serves.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use bywash_command::streams::say;
use bywash_gateway::Liveness;
use bywash_handover::Supervisor;

/// The interval between checks of the workers' heartbeats, unless the watchdog needs a shorter one.
const TURN: Duration = Duration::from_secs(1);

/// The shortest interval between checks. A worker has four heartbeats per second, so a watchdog
/// that needs more frequent checks cannot be satisfied.
const SHORTEST: Duration = Duration::from_millis(50);

/// Sends heartbeats to the watchdog until this value is dropped.
pub(crate) struct Watchdog {
    _ends: SyncSender<()>,
}

impl Watchdog {
    /// Starts to send heartbeats if the supervisor has a watchdog. If the thread for it cannot be
    /// started, no heartbeats are sent, and the supervisor then restarts the process.
    pub(crate) fn feed(mut liveness: Liveness, supervisor: &Supervisor) -> Self {
        let (ends, ended) = sync_channel(0);
        if let Some(interval) = supervisor.watchdog_interval() {
            // The check runs twice per watchdog interval, so that a single missed heartbeat does no
            // harm.
            let turn = (interval / 2).clamp(SHORTEST, TURN);
            let supervisor = supervisor.clone();
            let run = move || {
                while ended.recv_timeout(turn) == Err(RecvTimeoutError::Timeout) {
                    if liveness.is_alive()
                        && let Err(error) = supervisor.alive()
                    {
                        say(format!("bywash: cannot notify the supervisor: {error}"));
                    }
                }
            };
            if let Err(error) = std::thread::Builder::new().name("watchdog".into()).spawn(run) {
                say(format!("bywash: cannot feed the supervisor's watchdog: {error}"));
            }
        }
        Self { _ends: ends }
    }
}
