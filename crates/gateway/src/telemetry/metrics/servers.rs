//! Metrics of the servers. They are replaced at each scrape, because a reload may change the
//! servers.

use std::sync::atomic::{AtomicU64, Ordering};

use bywash_config::Server;
use bywash_units::{Ratio, Time};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::durations::Durations;
use super::snapshot::Snapshot;
use super::{Labels, table};

/// Counters of one server's requests, since the start.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// The number of requests sent on a connection that was opened for them.
    pub(crate) on_new: AtomicU64,
    /// The number of requests sent on a connection that had carried another request before.
    pub(crate) on_reused: AtomicU64,
    /// The times from sending a request to the head of its response.
    pub(crate) to_head: Durations,
}

/// The state and the counts of one server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServerStatus {
    /// The number of requests that run at the server now.
    pub(crate) running: u32,
    pub(crate) state: ServerState,
    /// The number of consecutive failed requests.
    pub(crate) failures: u32,
    /// The number of consecutive ejections.
    pub(crate) ejections: u32,
    /// The number of connections that could not be made, since the start.
    pub(crate) connect_failures: u64,
    /// The number of responses that were missing, late, truncated or not HTTP, since the start.
    pub(crate) response_failures: u64,
    /// The number of responses with a status of 500 or more, since the start.
    pub(crate) errors: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ServerState {
    Up,
    /// The server has returned, and its weight still rises. It has this weight now.
    SlowStart {
        share: Ratio,
    },
    /// The server gets one request at a time, until one succeeds or fails.
    Probation,
    Ejected {
        until: Time,
    },
    /// Probes have taken the server out.
    Down,
}

impl ServerState {
    /// The names of all states, as [`ServerState::name`] returns them.
    pub(crate) const NAMES: [&str; 5] = ["up", "slow_start", "probation", "ejected", "down"];

    /// Returns the name of the state in metrics and the log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::SlowStart { .. } => "slow_start",
            Self::Probation => "probation",
            Self::Ejected { .. } => "ejected",
            Self::Down => "down",
        }
    }
}

/// The families of metrics that have a label for the server.
pub(super) struct ServerFamilies {
    requests: Family<Labels, Counter>,
    to_head: Family<Labels, Snapshot>,
    running: Family<Labels, Gauge>,
    state: Family<Labels, Gauge>,
    failures: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
}

impl ServerFamilies {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let this = Self {
            requests: Family::default(),
            to_head: Family::default(),
            running: Family::default(),
            state: Family::default(),
            failures: Family::default(),
            errors: Family::default(),
        };
        table::SERVER_REQUESTS.register(registry, this.requests.clone());
        table::SERVER_RESPONSE_HEAD.register(registry, this.to_head.clone());
        table::SERVER_RUNNING.register(registry, this.running.clone());
        table::SERVER_STATE.register(registry, this.state.clone());
        table::SERVER_FAILURES.register(registry, this.failures.clone());
        table::SERVER_ERRORS.register(registry, this.errors.clone());
        this
    }

    pub(super) fn set<'a>(
        &self,
        servers: impl Iterator<Item = ((&'a Server, ServerStatus), &'a Traffic)>,
    ) {
        self.requests.clear();
        self.to_head.clear();
        self.running.clear();
        self.state.clear();
        self.failures.clear();
        self.errors.clear();
        for ((server, status), traffic) in servers {
            self.write(&server.to_string(), &status);
            self.write_traffic(&server.to_string(), traffic);
        }
    }

    fn write_traffic(&self, name: &str, traffic: &Traffic) {
        let server = || ("server", name.to_owned());
        let of = [(table::NEW, &traffic.on_new), (table::REUSED, &traffic.on_reused)];
        for (connection, count) in of {
            let labels = vec![server(), ("connection", connection.to_owned())];
            let count = count.load(Ordering::Relaxed);
            self.requests.get_or_create(&labels).inner().store(count, Ordering::Relaxed);
        }
        self.to_head.get_or_create(&vec![server()]).set(traffic.to_head.read());
    }

    fn write(&self, name: &str, status: &ServerStatus) {
        let server = || ("server", name.to_owned());
        self.running.get_or_create(&vec![server()]).set(i64::from(status.running));
        for state in ServerState::NAMES {
            let labels = vec![server(), ("state", state.to_owned())];
            self.state.get_or_create(&labels).set(i64::from(state == status.state.name()));
        }
        self.errors.get_or_create(&vec![server()]).inner().store(status.errors, Ordering::Relaxed);
        let kinds = [
            (table::CONNECT, status.connect_failures),
            (table::RESPONSE, status.response_failures),
        ];
        for (kind, count) in kinds {
            let labels = vec![server(), ("kind", kind.to_owned())];
            self.failures.get_or_create(&labels).inner().store(count, Ordering::Relaxed);
        }
    }
}
