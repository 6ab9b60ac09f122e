//! The metrics of the program and of its use of the machine.

use bywash_metrics::MetricKind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject, Words};

use super::label;

pub(super) static SUBJECT: Subject = Subject {
    title: "The process",
    about: "The version of the program, its use of the machine, and how workers share the engine. \
            Names that begin with `process_` are those that all Prometheus clients use.",
    metrics: &[
        &BUILD_INFO,
        &RESIDENT_MEMORY,
        &OPEN_FDS,
        &MAX_FDS,
        &CPU_SECONDS,
        &START_TIME,
        &THREADS,
        &ENGINE_LOCK_HELD,
        &ENGINE_LOCK_WAIT,
    ],
};

/// Returns a label whose single value is known when the program is built.
const fn built(name: &'static str, says: &'static str) -> Label {
    Label { name, says, words: Words::Configured }
}

pub(crate) static BUILD_INFO: Metric = Metric {
    name: "bywash_build_info",
    kind: Gauge,
    unit: "always 1",
    labels: &[
        built("version", "the version of the program"),
        built("os", "the operating system that it was built for"),
        built("arch", "the processor architecture that it was built for"),
        label("traces", "whether it can send spans", || vec!["yes", "no"]),
    ],
    help: "1 for the program that runs",
    remedy: Nothing("It shows which gateways of a site have which version."),
};
pub(crate) static RESIDENT_MEMORY: Metric = Metric {
    name: "process_resident_memory_bytes",
    kind: Gauge,
    unit: "bytes",
    labels: &[],
    help: "Resident memory of the process",
    remedy: Do("If it exceeds the maximum that `bywash doctor` prints, report it together with \
                bywash_memory_used_bytes."),
};
pub(crate) static OPEN_FDS: Metric = Metric {
    name: "process_open_fds",
    kind: Gauge,
    unit: "files",
    labels: &[],
    help: "Files and sockets that the process has open",
    remedy: Do("If it approaches process_max_fds: raise LimitNOFILE (`ulimit -n`), or lower \
                `client_limits.connections`. `bywash doctor` shows the calculation."),
};
pub(crate) static MAX_FDS: Metric = Metric {
    name: "process_max_fds",
    kind: Gauge,
    unit: "files",
    labels: &[],
    help: "Files and sockets that the process may have open",
    remedy: Nothing("Compare process_open_fds with it."),
};
pub(crate) static CPU_SECONDS: Metric = Metric {
    name: "process_cpu_seconds",
    kind: Counter,
    unit: "seconds",
    labels: &[],
    help: "CPU time of the process",
    remedy: Do(
        "If it approaches what the machine or its control group grants (`listen.workers` cores), \
         add cores or gateways.",
    ),
};
pub(crate) static START_TIME: Metric = Metric {
    name: "process_start_time_seconds",
    kind: Gauge,
    unit: "seconds since 1970",
    labels: &[],
    help: "When the process started",
    remedy: Do("If it changes although nobody has restarted the gateway, standard error says why."),
};
pub(crate) static THREADS: Metric = Metric {
    name: "process_threads",
    kind: Gauge,
    unit: "threads",
    labels: &[],
    help: "Threads of the process",
    remedy: Nothing("There is one for each worker, and about ten for everything else."),
};
pub(crate) static ENGINE_LOCK_HELD: Metric = Metric {
    name: "bywash_engine_lock_held_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[],
    help: "How long a thread held the lock of the engine; one in 61 holds is timed",
    remedy: Nothing(
        "Long holds explain bywash_engine_lock_wait_seconds. Every ten seconds one hold is longer, \
         because the engine computes the values of requests in it.",
    ),
};
pub(crate) static ENGINE_LOCK_WAIT: Metric = Metric {
    name: "bywash_engine_lock_wait_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[],
    help: "How long a thread waited for the lock of the engine, each time that another thread held \
           it",
    remedy: Do(
        "The rate of its sum is the mean number of threads that wait. If that is a large part of \
         `listen.workers`, fewer workers serve as much: add gateways instead.",
    ),
};
