//! Feeds the supervisor's watchdog.
//!
//! A thread of its own, which only looks at the heartbeats of the workers: the main thread reads files, which may be on a
//! disk that does not answer, and that is no reason to end a gateway that serves.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use bywash_gateway::Pulse;
use bywash_handover::Supervisor;

use crate::streams::say;

/// How often the workers' heartbeats are looked at, if nobody wants it more often.
const TURN: Duration = Duration::from_secs(1);

/// A watchdog that wants more than this cannot be fed: the workers have four heartbeats a second.
const SHORTEST: Duration = Duration::from_millis(50);

/// Feeds the watchdog until it is dropped.
pub(crate) struct Watchdog {
    _ends: SyncSender<()>,
}

impl Watchdog {
    /// Starts to feed it, if the supervisor has one. Without a thread nobody does, and the supervisor starts another process.
    pub(crate) fn feed(mut pulse: Pulse, supervisor: &Supervisor) -> Self {
        let (ends, ended) = sync_channel(0);
        if let Some(interval) = supervisor.watchdog_interval() {
            // Twice in the time at which it wants to be fed, as a heartbeat may be missed.
            let turn = (interval / 2).clamp(SHORTEST, TURN);
            let supervisor = supervisor.clone();
            let run = move || {
                while ended.recv_timeout(turn) == Err(RecvTimeoutError::Timeout) {
                    if pulse.is_alive()
                        && let Err(error) = supervisor.alive()
                    {
                        say(format!("bywash: the supervisor cannot be told: {error}"));
                    }
                }
            };
            if let Err(error) = std::thread::Builder::new().name("watchdog".into()).spawn(run) {
                say(format!("bywash: the watchdog is not fed: {error}"));
            }
        }
        Self { _ends: ends }
    }
}
