//! Feeds the supervisor's watchdog.
//!
//! This is a thread of its own, which only looks at the heartbeats of the workers. The main thread
//! reads files, possibly from a disk that does not answer, and that must not end a gateway that
//! serves.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use bywash_command::streams::say;
use bywash_gateway::Liveness;
use bywash_handover::Supervisor;

/// The interval between looks at the workers' heartbeats, unless the watchdog needs a shorter one.
const TURN: Duration = Duration::from_secs(1);

/// The shortest interval between looks. A watchdog that needs more cannot be fed, because the
/// workers have four heartbeats a second.
const SHORTEST: Duration = Duration::from_millis(50);

/// Feeds the watchdog until this is dropped.
pub(crate) struct Watchdog {
    _ends: SyncSender<()>,
}

impl Watchdog {
    /// Starts to feed the watchdog, if the supervisor has one. If no thread can be started, the
    /// watchdog is not fed and the supervisor starts another process.
    pub(crate) fn feed(mut liveness: Liveness, supervisor: &Supervisor) -> Self {
        let (ends, ended) = sync_channel(0);
        if let Some(interval) = supervisor.watchdog_interval() {
            // Twice per interval, as one heartbeat may be missed.
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
