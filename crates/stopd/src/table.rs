//! The table of the daemon's metrics: see `bywash_metrics`.

use bywash_lease::{Fault, Reason};
use bywash_metrics::Kind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject, Words};

use crate::numbers::Spared;

/// The metrics of the daemon.
pub static METRICS: [&Subject; 1] = [&SUBJECT];

static SUBJECT: Subject = Subject {
    title: "The stop daemon",
    about: "What `bywash sentry` says at `sentry.admin`: which requests were stopped, and what that came to in the \
            databases. What is wrong with a database, if anything, `/v1/status` says in words.",
    metrics: &[
        &STOPS,
        &REFUSALS,
        &CANCELLED,
        &WOULD_CANCEL,
        &SPARED,
        &STATEMENTS,
        &CONNECTED,
        &CANCEL_SECONDS,
        &LEASES,
        &LEASES_EXPIRED,
        &CONVERSATIONS,
    ],
};

const DATABASE: Label =
    Label { name: "database", says: "a `[database.NAME]`", words: Words::Configured };

/// Creates a label with these values.
const fn reason(says: &'static str, words: fn() -> Vec<&'static str>) -> Label {
    Label { name: "reason", says, words: Words::Fixed(words) }
}

pub(crate) static STOPS: Metric = Metric {
    name: "bywash_sentry_stops",
    kind: Counter,
    unit: "requests",
    labels: &[reason("why", || Reason::ALL.map(Reason::name).into())],
    help: "Requests that were stopped, by reason",
    remedy: Do(
        "If it stands still while clients leave: nobody tells the daemon (bywash_orphans_lost_total of the gateway, \
         `stats()` of an SDK).",
    ),
};
pub(crate) static REFUSALS: Metric = Metric {
    name: "bywash_sentry_refusals",
    kind: Counter,
    unit: "messages",
    labels: &[reason("as the daemon answers it", || Fault::ALL.map(Fault::name).into())],
    help: "Messages that were refused; malformed or forbidden ones: find out who sends them",
    remedy: Do(
        "`forbidden`: name the user in `sentry.leases` or `sentry.stops`. `unknown_database`: the application says \
         another name than `[database.NAME]`. `full`: it leases and does not release. `malformed`: find out who \
         sends it. `taken` and `not_leased` happen now and then.",
    ),
};
pub(crate) static CANCELLED: Metric = Metric {
    name: "bywash_sentry_cancelled",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE],
    help: "Statements that were cancelled",
    remedy: Nothing("It is work that the database was spared."),
};
pub(crate) static WOULD_CANCEL: Metric = Metric {
    name: "bywash_sentry_would_cancel",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE],
    help: "Statements that would have been cancelled, were the mode not observe",
    remedy: Do("If the log says of each that it was right to: `sentry.mode = \"enforce\"`."),
};
pub(crate) static SPARED: Metric = Metric {
    name: "bywash_sentry_spared",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE, reason("why", || Spared::ALL.map(Spared::name).into())],
    help: "Statements of stopped requests that were left alone, by reason; refused: grant the privilege",
    remedy: Do(
        "`refused`: grant what `/v1/status` says. `late`: raise `statements_per_second` if the database can bear it. \
         `down`: see bywash_sentry_connected. `writes`, `other_user`: as you have configured it. `unsure`: leases \
         instead of marks. `gone`: nothing, it had ended.",
    ),
};
pub(crate) static STATEMENTS: Metric = Metric {
    name: "bywash_sentry_statements",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE],
    help: "Statements that the database was asked for",
    remedy: Nothing("It is what the daemon costs the database; `statements_per_second` bounds it."),
};
pub(crate) static CONNECTED: Metric = Metric {
    name: "bywash_sentry_connected",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[DATABASE],
    help: "Whether the database answers; 0: nothing is cancelled there",
    remedy: Do(
        "Is the database there, and is the password of `password_file` the right one? `/v1/status` says what it answered.",
    ),
};
pub(crate) static CANCEL_SECONDS: Metric = Metric {
    name: "bywash_sentry_cancel_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[],
    help: "From a stop to the cancellation's answer, in seconds",
    remedy: Do(
        "If it grows: the budget is used up (raise `statements_per_second` if the database can bear it), or the database \
         is slow to answer.",
    ),
};
pub(crate) static LEASES: Metric = Metric {
    name: "bywash_sentry_leases",
    kind: Gauge,
    unit: "connections",
    labels: &[],
    help: "Connections that are leased",
    remedy: Do(
        "If it only grows: an application forgets to release. If it stays 0: none leases, see `stats()` of the SDK.",
    ),
};
pub(crate) static LEASES_EXPIRED: Metric = Metric {
    name: "bywash_sentry_leases_expired",
    kind: Counter,
    unit: "leases",
    labels: &[],
    help: "Leases that nobody released in their time: an application forgets to",
    remedy: Do(
        "Find the path on which the application takes a connection and does not give it back.",
    ),
};
pub(crate) static CONVERSATIONS: Metric = Metric {
    name: "bywash_sentry_conversations",
    kind: Gauge,
    unit: "clients",
    labels: &[],
    help: "Clients that are connected",
    remedy: Do(
        "If gateway or application is not among them: may its user enter the folder of `sentry.socket`?",
    ),
};
