//! Metrics of the gateway's process.

use bywash_metrics::Kind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject};

use super::label;
use crate::process::memory::Level;
use crate::process::panics::Thread;

pub(super) static SUBJECT: Subject = Subject {
    title: "The gateway",
    about: "How the process is.",
    metrics: &[
        &BYPASSED,
        &DECISIONS_UNWRITTEN,
        &STATE_UNREADABLE,
        &DRAINING,
        &MEMORY_USED,
        &MEMORY_BUDGET,
        &MEMORY_LEVEL,
        &PANICS,
        &WORKER_RESTARTS,
        &ACCESS_LOG_DROPPED,
        &STDERR_DROPPED,
        &TAP_MISSED,
        &DROPPED_SPANS,
    ],
};

const THREAD: Label =
    label("thread", "the kind of thread that has panicked", || Thread::NAMES.into());

pub(crate) static BYPASSED: Metric = Metric {
    name: "bywash_bypassed",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 while no decisions are taken",
    remedy: Do("`bywash bypass off`, once the fault is found for which somebody put it on."),
};
pub(crate) static DECISIONS_UNWRITTEN: Metric = Metric {
    name: "bywash_decisions_unwritten",
    kind: Gauge,
    unit: "documents",
    labels: &[],
    help: "Documents of operators' decisions (overrides, elephants) that could not be written to `state.directory`",
    remedy: Do(
        "The decisions hold, but only until the process ends. `bywash status` says why; make room on the disk: writing is \
         tried again every 5 s.",
    ),
};
pub(crate) static STATE_UNREADABLE: Metric = Metric {
    name: "bywash_state_unreadable",
    kind: Gauge,
    unit: "documents",
    labels: &[],
    help: "Documents of operators' decisions that could not be read when the process started",
    remedy: Do(
        "Standard error says why, and where the file is kept. If it was the overrides, nothing is decided: look at what was \
         overridden, then `bywash bypass off`.",
    ),
};
pub(crate) static DRAINING: Metric = Metric {
    name: "bywash_draining",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 while the gateway is stopping",
    remedy: Do(
        "It lasts for `stop.delay` and `stop.grace`. Longer: end the process by a second signal.",
    ),
};
pub(crate) static PANICS: Metric = Metric {
    name: "bywash_panics",
    kind: Counter,
    unit: "panics",
    labels: &[THREAD],
    help: "Panics of the gateway's threads",
    remedy: Do(
        "A panic is a fault in bywash: report it with its lines on standard error. A panic of a connection's task ended \
         that connection only.",
    ),
};
pub(crate) static WORKER_RESTARTS: Metric = Metric {
    name: "bywash_worker_restarts",
    kind: Counter,
    unit: "restarts",
    labels: &[],
    help: "Workers that failed and started again, each at most once a second",
    remedy: Do(
        "Each restart cut off the connections of a worker, and `/readyz` was 503 meanwhile. It is a fault in bywash, see \
         `bywash_panics_total`; if it goes on, go back to the version before.",
    ),
};
pub(crate) static ACCESS_LOG_DROPPED: Metric = Metric {
    name: "bywash_access_log_dropped",
    kind: Counter,
    unit: "lines",
    labels: &[],
    help: "Lines of the access log that could not be written",
    remedy: Do(
        "The disk is full or slow, or who reads standard output does not keep up. Requests did not wait for it.",
    ),
};
pub(crate) static STDERR_DROPPED: Metric = Metric {
    name: "bywash_stderr_dropped",
    kind: Counter,
    unit: "lines",
    labels: &[],
    help: "Lines for standard error that were dropped, because it was not read",
    remedy: Do("Look at what reads the standard error of the process. Nothing else waited for it."),
};
pub(crate) static TAP_MISSED: Metric = Metric {
    name: "bywash_tap_missed",
    kind: Counter,
    unit: "entries",
    labels: &[],
    help: "Entries that whoever watches was too slow for",
    remedy: Do("Ask `bywash tap` for less (`--class`, `--outcome`); the access log has them all."),
};
pub(crate) static DROPPED_SPANS: Metric = Metric {
    name: "bywash_dropped_spans",
    kind: Counter,
    unit: "spans",
    labels: &[],
    help: "Spans that did not arrive at the collector of log.traces",
    remedy: Do("Is the collector there, does it keep up? Requests did not wait for it."),
};
pub(crate) static MEMORY_USED: Metric = Metric {
    name: "bywash_memory_used_bytes",
    kind: Gauge,
    unit: "bytes",
    labels: &[],
    help: "Memory that clients make the gateway hold: buffers, connections, requests, bodies, answers",
    remedy: Do(
        "Near bywash_memory_budget_bytes: more memory, or fewer `limits.connections`. `bywash doctor` has the arithmetic.",
    ),
};
pub(crate) static MEMORY_BUDGET: Metric = Metric {
    name: "bywash_memory_budget_bytes",
    kind: Gauge,
    unit: "bytes",
    labels: &[],
    help: "The most of it that there may be: limits.memory",
    remedy: Nothing("It is what bywash_memory_used_bytes is compared with."),
};
pub(crate) static MEMORY_LEVEL: Metric = Metric {
    name: "bywash_memory_level",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[label("state", "what is done near the budget", || {
        Level::ALL.map(Level::name).into()
    })],
    help: "1 at the level of the overload manager: calm, shrink (small windows and buffers), close (short keep-alive), refuse (no large bodies, new connections take the place of idle ones)",
    remedy: Do(
        "Beyond calm: see who holds memory, in bywash_connections and `bywash status`. Many connections from few addresses are \
         an attack: `limits.connections_per_address`. Else: more memory.",
    ),
};
