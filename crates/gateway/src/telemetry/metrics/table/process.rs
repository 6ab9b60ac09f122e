//! The metrics of the gateway's process.

use bywash_metrics::MetricKind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject};

use super::label;
use crate::process::memory::Level;
use crate::process::panics::Thread;

pub(super) static SUBJECT: Subject = Subject {
    title: "The gateway",
    about: "The state of the gateway's process.",
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

const THREAD: Label = label("thread", "the kind of thread that panicked", || Thread::NAMES.into());

pub(crate) static BYPASSED: Metric = Metric {
    name: "bywash_bypassed",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 while the gateway is bypassed and takes no decisions",
    remedy: Do("Run `bywash bypass off` once the fault for which an operator switched it on is \
                found."),
};
pub(crate) static DECISIONS_UNWRITTEN: Metric = Metric {
    name: "bywash_decisions_unwritten",
    kind: Gauge,
    unit: "documents",
    labels: &[],
    help: "Documents of operators' decisions (overrides, elephants) that could not be saved in \
           `state.directory`",
    remedy: Do(
        "The decisions hold only until the process ends. `bywash status` says why they could not \
         be saved. If the disk is full, make room: the gateway retries every 5 s.",
    ),
};
pub(crate) static STATE_UNREADABLE: Metric = Metric {
    name: "bywash_state_unreadable",
    kind: Gauge,
    unit: "documents",
    labels: &[],
    help: "Documents of operators' decisions that could not be read when the process started",
    remedy: Do(
        "Standard error says why, and where the file is kept. If the overrides could not be read, \
         the gateway is bypassed: check what was overridden, then run `bywash bypass off`.",
    ),
};
pub(crate) static DRAINING: Metric = Metric {
    name: "bywash_draining",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 while the gateway is stopping",
    remedy: Do(
        "It lasts for `stop.delay` and `stop.grace`. If it lasts longer, end the process with a \
         second signal.",
    ),
};
pub(crate) static PANICS: Metric = Metric {
    name: "bywash_panics",
    kind: Counter,
    unit: "panics",
    labels: &[THREAD],
    help: "Panics of the gateway's threads",
    remedy: Do(
        "A panic is a fault in bywash: report it with its lines on standard error. A panic in a \
         connection's task ended only that connection.",
    ),
};
pub(crate) static WORKER_RESTARTS: Metric = Metric {
    name: "bywash_worker_restarts",
    kind: Counter,
    unit: "restarts",
    labels: &[],
    help: "Workers that failed and restarted, each at most once a second",
    remedy: Do(
        "Each restart cut off the connections of a worker, and `/readyz` returned 503 meanwhile. \
         It is a fault in bywash, see `bywash_panics_total`. If it continues, go back to the \
         previous version.",
    ),
};
pub(crate) static ACCESS_LOG_DROPPED: Metric = Metric {
    name: "bywash_access_log_dropped",
    kind: Counter,
    unit: "lines",
    labels: &[],
    help: "Lines of the access log that could not be written",
    remedy: Do(
        "The disk is full or slow, or the reader of standard output is too slow. Requests did not \
         wait for it.",
    ),
};
pub(crate) static STDERR_DROPPED: Metric = Metric {
    name: "bywash_stderr_dropped",
    kind: Counter,
    unit: "lines",
    labels: &[],
    help: "Lines for standard error that were dropped because nothing read them in time",
    remedy: Do("Check what reads the standard error of the process. Nothing else waited for it."),
};
pub(crate) static TAP_MISSED: Metric = Metric {
    name: "bywash_tap_missed",
    kind: Counter,
    unit: "entries",
    labels: &[],
    help: "Entries that were dropped because a watcher (`bywash tap`) was too slow",
    remedy: Do("Limit `bywash tap` (`--class`, `--outcome`). The access log has all entries."),
};
pub(crate) static DROPPED_SPANS: Metric = Metric {
    name: "bywash_dropped_spans",
    kind: Counter,
    unit: "spans",
    labels: &[],
    help: "Spans that the collector of log.traces did not receive",
    remedy: Do("Check that the collector runs and is fast enough. Requests did not wait for it."),
};
pub(crate) static MEMORY_USED: Metric = Metric {
    name: "bywash_memory_used_bytes",
    kind: Gauge,
    unit: "bytes",
    labels: &[],
    help: "Memory that the gateway holds for clients: buffers, connections, requests, bodies, \
           answers",
    remedy: Do(
        "If it approaches bywash_memory_budget_bytes: give the gateway more memory, or lower \
         `client_limits.connections`. `bywash doctor` shows the calculation.",
    ),
};
pub(crate) static MEMORY_BUDGET: Metric = Metric {
    name: "bywash_memory_budget_bytes",
    kind: Gauge,
    unit: "bytes",
    labels: &[],
    help: "The memory budget for clients: client_limits.memory",
    remedy: Nothing("Compare bywash_memory_used_bytes with it."),
};
pub(crate) static MEMORY_LEVEL: Metric = Metric {
    name: "bywash_memory_level",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[label("state", "what the gateway does near the budget", || {
        Level::ALL.map(Level::name).into()
    })],
    help: "1 at the current level of the overload manager: calm, shrink (small windows and \
           buffers), close (short keep-alive), refuse (no large bodies, new connections replace \
           idle ones)",
    remedy: Do(
        "At any level but calm: bywash_connections and `bywash status` show what holds memory. \
         Many connections from few addresses are an attack: set \
         `client_limits.connections_per_address`. Otherwise, add memory.",
    ),
};
