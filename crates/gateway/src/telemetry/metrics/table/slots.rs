//! The metrics of slots: their number, and the requests that hold them.

use bywash_metrics::MetricKind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Metric, Subject};

pub(super) static SUBJECT: Subject = Subject {
    title: "Slots",
    about: "How many requests the application may work on at once, and how many it works on.",
    metrics: &[
        &LIMIT,
        &LIMIT_LEAST,
        &LIMIT_MOST,
        &RUNNING,
        &LIFO,
        &STREAMS,
        &UPLOADS,
        &DEPARTED,
        &FILES,
        &FILES_FORGOTTEN,
    ],
};

pub(crate) static LIMIT: Metric = Metric {
    name: "bywash_limit",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Slots: requests that all servers together may work on at once",
    remedy: Do(
        "If it stays at bywash_limit_most while requests wait, and bywash_service_seconds does not \
         grow, raise `concurrency.max` (under policy `fixed`: `upstream.limit`). If it stays at \
         bywash_limit_least, the application has become slow: check it.",
    ),
};
pub(crate) static LIMIT_LEAST: Metric = Metric {
    name: "bywash_limit_least",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "The least value that the limit can have in the configuration in force",
    remedy: Nothing(
        "Compare bywash_limit with it. Under policy `fixed`, both bounds equal the limit.",
    ),
};
pub(crate) static LIMIT_MOST: Metric = Metric {
    name: "bywash_limit_most",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "The greatest value that the limit can have in the configuration in force",
    remedy: Nothing("As bywash_limit_least."),
};
pub(crate) static RUNNING: Metric = Metric {
    name: "bywash_running",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests that hold a slot",
    remedy: Do(
        "If it stays at bywash_limit while nothing waits, or above it for long, requests hang in \
         the application. `upstream.response_timeout` and `total_timeout` bound that.",
    ),
};
pub(crate) static LIFO: Metric = Metric {
    name: "bywash_lifo",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 during overload, while the newest requests go first",
    remedy: Do(
        "For some minutes this is normal under overload. If it lasts for hours, add capacity, or \
         find out which requests cause the load (`bywash elephants list`).",
    ),
};
pub(crate) static STREAMS: Metric = Metric {
    name: "bywash_streams",
    kind: Gauge,
    unit: "streams",
    labels: &[],
    help: "WebSockets and event streams, which do not count against the limit",
    remedy: Do(
        "If it approaches `client_limits.streams`, raise that if the servers can bear it. The \
         gateway refuses further streams.",
    ),
};
pub(crate) static FILES: Metric = Metric {
    name: "bywash_files",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests for files that the server sends without computing anything, and that took no \
           slot",
    remedy: Do(
        "If such files do occupy a worker of the application, set `queue.skip_files = false`, or \
         write a class that matches them.",
    ),
};
pub(crate) static FILES_FORGOTTEN: Metric = Metric {
    name: "bywash_files_forgotten",
    kind: Counter,
    unit: "files",
    labels: &[],
    help: "Files that the gateway knew and has forgotten, because others needed their places; \
           their next requests take a slot",
    remedy: Do(
        "If it grows all the time, the site has more than 16,384 files, or clients ask for files \
         with queries that they invent. The access log shows which; refuse such clients in front \
         of the gateway.",
    ),
};
pub(crate) static DEPARTED: Metric = Metric {
    name: "bywash_departed",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests that hold a slot although their clients have left, because the application \
           works on",
    remedy: Do(
        "If it is a large part of bywash_running, let the application stop such work (the stop \
         daemon, the SDKs). If the application does stop but its server hides that: \
         `upstream.departures = \"noticed\"`.",
    ),
};
pub(crate) static UPLOADS: Metric = Metric {
    name: "bywash_uploads",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests whose bodies the gateway is still reading; they do not wait for a slot yet",
    remedy: Do(
        "If there are many for long, clients send slowly or pause. None of them holds a slot. \
         `client_limits.max_body_bytes` bounds what one request may send.",
    ),
};
