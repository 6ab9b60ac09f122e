//! Metrics of the program and of its use of the machine.

use bywash_metrics::Kind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject, Words};

use super::label;

pub(super) static SUBJECT: Subject = Subject {
    title: "The process",
    about: "Which program runs, what it uses of the machine, and how workers share the engine. Names that begin with \
            `process_` are those of all Prometheus clients.",
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

/// Returns a label whose one value is known when the program is built.
const fn built(name: &'static str, says: &'static str) -> Label {
    Label { name, says, words: Words::Configured }
}

pub(crate) static BUILD_INFO: Metric = Metric {
    name: "bywash_build_info",
    kind: Gauge,
    unit: "always 1",
    labels: &[
        built("version", "of the program"),
        built("os", "what it was built for"),
        built("arch", "what it was built for"),
        label("traces", "whether it can send spans", || vec!["yes", "no"]),
    ],
    help: "1 for the program that runs",
    remedy: Nothing("It says which gateways of a site have which version."),
};
pub(crate) static RESIDENT_MEMORY: Metric = Metric {
    name: "process_resident_memory_bytes",
    kind: Gauge,
    unit: "bytes",
    labels: &[],
    help: "Memory that the process has",
    remedy: Do(
        "If it grows beyond what `bywash doctor` says it may come to: report it, with bywash_memory_used_bytes.",
    ),
};
pub(crate) static OPEN_FDS: Metric = Metric {
    name: "process_open_fds",
    kind: Gauge,
    unit: "files",
    labels: &[],
    help: "Files and sockets that the process has open",
    remedy: Do(
        "Near process_max_fds: raise LimitNOFILE (`ulimit -n`), or lower `limits.connections`; `bywash doctor` has the \
         arithmetic.",
    ),
};
pub(crate) static MAX_FDS: Metric = Metric {
    name: "process_max_fds",
    kind: Gauge,
    unit: "files",
    labels: &[],
    help: "Files and sockets that the process may have open",
    remedy: Nothing("It is what process_open_fds is compared with."),
};
pub(crate) static CPU_SECONDS: Metric = Metric {
    name: "process_cpu_seconds",
    kind: Counter,
    unit: "seconds",
    labels: &[],
    help: "CPU time of the process",
    remedy: Do(
        "If it comes near what the machine or its control group grants (`listen.workers` cores): more cores, or more \
         gateways.",
    ),
};
pub(crate) static START_TIME: Metric = Metric {
    name: "process_start_time_seconds",
    kind: Gauge,
    unit: "seconds since 1970",
    labels: &[],
    help: "When the process was started",
    remedy: Do("If it changes and nobody has restarted the gateway: standard error says why."),
};
pub(crate) static THREADS: Metric = Metric {
    name: "process_threads",
    kind: Gauge,
    unit: "threads",
    labels: &[],
    help: "Threads of the process",
    remedy: Nothing("There are as many as workers, and about ten for everything else."),
};
pub(crate) static ENGINE_LOCK_HELD: Metric = Metric {
    name: "bywash_engine_lock_held_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[],
    help: "How long a thread held the lock of the engine; one hold in 61 is timed",
    remedy: Nothing(
        "Long holds explain bywash_engine_lock_wait_seconds. Once in ten seconds a hold is longer, because the values of \
         requests are computed in it.",
    ),
};
pub(crate) static ENGINE_LOCK_WAIT: Metric = Metric {
    name: "bywash_engine_lock_wait_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[],
    help: "For how long a thread waited for the engine, each time that another had it",
    remedy: Do(
        "The rate of its sum is how many threads wait at any moment. If that is much of `listen.workers`: fewer workers \
         serve as much; then more gateways.",
    ),
};
