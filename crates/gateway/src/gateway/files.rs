//! The number of file descriptors that the gateway may have open at once, by purpose.

use std::fmt;

use bywash_config::Config;

use crate::admin;
use crate::connections::SPARE;

/// The maximum number of file descriptors that a configuration can use, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    /// Open client connections: `client_limits.connections`.
    clients: u64,
    /// Client connections beyond that limit, which are evicted and still close.
    closing: u64,
    /// Connections to servers for requests that hold a slot: `upstream.limit` or `concurrency.max`.
    running: u64,
    /// Idle connections to servers, kept for the next request: up to `upstream.limit` or
    /// `concurrency.max` for each worker.
    idle: u64,
    /// Pinned connections to servers, each of which only one client connection uses:
    /// `upstream.pinned_connections`.
    pinned: u64,
    /// Connections to servers for requests that hold no slot: `client_limits.observed`.
    observed: u64,
    /// Connections to servers for long-lived streams: `client_limits.streams`.
    streams: u64,
    /// Connections to servers for probes: one per server.
    probes: u64,
    /// Connections of operators, on the admin listener.
    admin: u64,
    /// All other files: runtimes and listeners of the workers, logs, state.
    others: u64,
}

/// The number of file descriptors of one worker: its runtime, the watch for disconnects and its
/// copies of the listeners.
const PER_WORKER: u64 = 8;

/// The number of file descriptors for standard streams, listeners, logs, state, the runtimes of
/// other threads, and sources of measurements.
const OTHERS: u64 = 96;

impl Files {
    /// Returns the maximum numbers of file descriptors that a configuration can use with `workers`
    /// workers.
    pub fn of(config: &Config, workers: usize) -> Self {
        let (limits, limit) = (&config.client_limits, u64::from(config.upstream.limit));
        let probes =
            if config.upstream.health.path.is_some() { config.upstream.servers.len() } else { 0 };
        Self {
            clients: limits.connections as u64,
            closing: SPARE as u64,
            running: limit,
            idle: limit * workers as u64,
            pinned: config.upstream.pinned_connections as u64,
            observed: limits.observed as u64,
            streams: limits.streams as u64,
            probes: probes as u64,
            admin: admin::MOST_CONNECTIONS as u64,
            others: OTHERS + PER_WORKER * workers as u64,
        }
    }

    /// Returns the total number of file descriptors of all purposes.
    pub const fn sum(&self) -> u64 {
        self.clients
            + self.closing
            + self.running
            + self.idle
            + self.pinned
            + self.observed
            + self.streams
            + self.probes
            + self.admin
            + self.others
    }
}

/// Prints each number and the total for operators, with the names of the keys that they can change.
impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            clients,
            closing,
            running,
            idle,
            pinned,
            observed,
            streams,
            probes,
            admin,
            others,
        } = self;
        write!(
            f,
            "client_limits.connections {clients} + {closing} closing + {running} for slots + \
             {idle} idle connections to servers + upstream.pinned_connections {pinned} + \
             client_limits.observed {observed} + client_limits.streams {streams} + {probes} probes \
             + {admin} for operators + {others} others = {}",
            self.sum()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> Config {
        let text = format!("version = 1\nupstream.server = 'http://127.0.0.1:2'\n{more}");
        Config::parse(&text, "test").expect("it is right").0
    }

    #[test]
    fn every_key_that_lets_somebody_open_a_file_counts() {
        let base = Files::of(&config(""), 2).sum();
        for (more, files) in [
            ("client_limits.connections = 10001", 1),
            ("client_limits.observed = 4001", 1),
            ("client_limits.streams = 1001", 1),
            // One connection that runs, and one idle connection in each of two workers.
            ("upstream.limit = 17", 3),
            ("upstream.pinned_connections = 257", 1),
            ("health.path = '/'", 1),
        ] {
            assert_eq!(Files::of(&config(more), 2).sum(), base + files, "{more}");
        }
        assert_eq!(Files::of(&config(""), 3).sum(), base + 16 + PER_WORKER);
    }
}
