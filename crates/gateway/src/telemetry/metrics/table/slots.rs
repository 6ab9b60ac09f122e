//! Metrics of slots: their number, and the requests that hold them.

use bywash_metrics::Kind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Metric, Subject};

pub(super) static SUBJECT: Subject = Subject {
    title: "Slots",
    about: "What the application is allowed to work on at once, and what it does.",
    metrics: &[
        &LIMIT,
        &LIMIT_LEAST,
        &LIMIT_MOST,
        &RUNNING,
        &NEWEST_FIRST,
        &STREAMS,
        &UPLOADS,
        &DEPARTED,
        &FILES,
    ],
};

pub(crate) static LIMIT: Metric = Metric {
    name: "bywash_limit",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Slots: requests that all servers together may work on at once",
    remedy: Do(
        "If it stays at bywash_limit_most while requests wait, and bywash_service_seconds does not grow: a higher \
         `limit.max` (under policy `fixed`: `upstream.limit`). If it stays at bywash_limit_least: the application has become slow, look there.",
    ),
};
pub(crate) static LIMIT_LEAST: Metric = Metric {
    name: "bywash_limit_least",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "The fewest slots that the limit may come to, by the configuration in force",
    remedy: Nothing(
        "It is what bywash_limit is compared with. Under policy `fixed` both bounds are the limit.",
    ),
};
pub(crate) static LIMIT_MOST: Metric = Metric {
    name: "bywash_limit_most",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "The most slots that the limit may come to, by the configuration in force",
    remedy: Nothing("As bywash_limit_least."),
};
pub(crate) static RUNNING: Metric = Metric {
    name: "bywash_running",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests that hold a slot",
    remedy: Do(
        "If it stays at bywash_limit with nobody waiting, or above it for long: requests hang in the application; \
         `upstream.response_timeout` and `total_timeout` bound that.",
    ),
};
pub(crate) static NEWEST_FIRST: Metric = Metric {
    name: "bywash_newest_first",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 while newest go first: it is overload",
    remedy: Do(
        "For minutes it is what bywash is for. For hours: more capacity, or find out which requests cause the load \
         (`bywash elephants list`).",
    ),
};
pub(crate) static STREAMS: Metric = Metric {
    name: "bywash_streams",
    kind: Gauge,
    unit: "streams",
    labels: &[],
    help: "WebSockets and event streams, counted apart from the limit",
    remedy: Do(
        "If it comes near `limits.streams`: raise that, if servers can bear it; further ones are refused.",
    ),
};
pub(crate) static FILES: Metric = Metric {
    name: "bywash_files",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests for files that the server sends without computing anything, which took no slot",
    remedy: Do(
        "If such files cost the application a worker all the same: `queue.skip_files = false`, or a class that \
         matches them.",
    ),
};
pub(crate) static DEPARTED: Metric = Metric {
    name: "bywash_departed",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests that hold a slot although their clients have gone, as the application works on",
    remedy: Do(
        "If it is a large part of bywash_running: let the application stop such work (the stop daemon, the SDKs). If \
         the application does stop and its server hides that: `upstream.departures = \"noticed\"`.",
    ),
};
pub(crate) static UPLOADS: Metric = Metric {
    name: "bywash_uploads",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests whose bodies are still read: they do not wait for a slot yet",
    remedy: Do(
        "If there are many for long, clients send slowly, or hold back what they send. None of them holds a slot; \
         `limits.max_body_bytes` bounds what one may send.",
    ),
};
