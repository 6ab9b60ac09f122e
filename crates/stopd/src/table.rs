//! The table of the daemon's metrics, in the form of `bywash_metrics`.

use bywash_lease::{Reason, Refusal};
use bywash_metrics::MetricKind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject, Words};

use crate::spared::Spared;

/// All metrics of the daemon.
pub static METRICS: [&Subject; 1] = [&SUBJECT];

static SUBJECT: Subject = Subject {
    title: "The stop daemon",
    about: "The metrics of `bywash stopd` at `stopd.admin`: the stopped requests, and the effect \
            in the databases. If a database has a problem, `/v1/status` describes it.",
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
        &RELAYS_REFUSED,
    ],
};

const DATABASE: Label = Label {
    name: "database",
    says: "a `[database.NAME]`, or `stopd.upstream`",
    words: Words::Configured,
};

/// Creates a label named `reason` with the values of `words`.
const fn reason(says: &'static str, words: fn() -> Vec<&'static str>) -> Label {
    Label { name: "reason", says, words: Words::Fixed(words) }
}

pub(crate) static STOPS: Metric = Metric {
    name: "bywash_stopd_stops",
    kind: Counter,
    unit: "requests",
    labels: &[reason("why the request was stopped", || Reason::ALL.map(Reason::name).into())],
    help: "Requests that were stopped, by reason",
    remedy: Do("If it does not grow while clients leave, no program tells the daemon: see \
         bywash_orphans_lost_total of the gateway and `stats()` of an SDK."),
};
pub(crate) static REFUSALS: Metric = Metric {
    name: "bywash_stopd_refusals",
    kind: Counter,
    unit: "messages",
    labels: &[reason("the error in the daemon's answer", || {
        Refusal::ALL.map(Refusal::name).into()
    })],
    help: "Messages that the daemon refused, by reason",
    remedy: Do(
        "`forbidden`: find out which user sends them; if the user may, name it in `stopd.leases` \
         or `stopd.stops`. `unknown_database`: the application uses another name than that of \
         `[database.NAME]`. `full`: the application takes leases and does not release them. \
         `malformed`: find out which program sends them. `taken` and `not_leased` happen now and \
         then.",
    ),
};
pub(crate) static CANCELLED: Metric = Metric {
    name: "bywash_stopd_cancelled",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE],
    help: "Statements that were cancelled",
    remedy: Nothing("The database was spared this work."),
};
pub(crate) static WOULD_CANCEL: Metric = Metric {
    name: "bywash_stopd_would_cancel",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE],
    help: "Statements that the mode enforce would have cancelled",
    remedy: Do(
        "If the log shows that each cancellation would be right, set `stopd.mode = \"enforce\"`.",
    ),
};
pub(crate) static SPARED: Metric = Metric {
    name: "bywash_stopd_spared",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE, reason("why it was spared", || Spared::ALL.map(Spared::name).into())],
    help: "Statements of stopped requests that were not cancelled, by reason",
    remedy: Do("`refused`: grant the privilege that `/v1/status` names. `late`: raise \
         `statements_per_second` if the database can bear it. `down`: see bywash_stopd_connected. \
         `writes`, `other_user`: the configuration excludes them. `unsure`: use leases instead of \
         query tags. `gone`: nothing to do, the statement had ended."),
};
pub(crate) static STATEMENTS: Metric = Metric {
    name: "bywash_stopd_statements",
    kind: Counter,
    unit: "statements",
    labels: &[DATABASE],
    help: "Statements that the daemon sent to the database",
    remedy: Nothing("It is the daemon's load on the database; `statements_per_second` bounds it."),
};
pub(crate) static CONNECTED: Metric = Metric {
    name: "bywash_stopd_connected",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[DATABASE],
    help: "Whether the database answers; 0: the daemon cancels nothing there",
    remedy: Do(
        "If it is 0, check that the database runs and that `password_file` has the right password. \
         `stopd.upstream` is the other daemon of a relay. `/v1/status` shows the error.",
    ),
};
pub(crate) static CANCEL_SECONDS: Metric = Metric {
    name: "bywash_stopd_cancel_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[],
    help: "Time from a stop to the answer to its cancellation, in seconds",
    remedy: Do(
        "If it grows, the budget is used up (raise `statements_per_second` if the database can \
         bear it), or the database answers slowly.",
    ),
};
pub(crate) static LEASES: Metric = Metric {
    name: "bywash_stopd_leases",
    kind: Gauge,
    unit: "connections",
    labels: &[],
    help: "Connections that are leased",
    remedy: Do("If it only grows, an application does not release its leases. If it stays 0, no \
         application takes leases: see `stats()` of the SDK."),
};
pub(crate) static LEASES_EXPIRED: Metric = Metric {
    name: "bywash_stopd_leases_expired",
    kind: Counter,
    unit: "leases",
    labels: &[],
    help: "Leases that ended because the application did not release them in time",
    remedy: Do(
        "Find the path on which the application takes a connection and does not give it back.",
    ),
};
pub(crate) static CONVERSATIONS: Metric = Metric {
    name: "bywash_stopd_conversations",
    kind: Gauge,
    unit: "clients",
    labels: &[],
    help: "Clients that are connected",
    remedy: Do(
        "If the gateway or an application is missing, check that its user may enter the folder of \
         `stopd.socket`.",
    ),
};
pub(crate) static RELAYS_REFUSED: Metric = Metric {
    name: "bywash_stopd_relays_refused",
    kind: Counter,
    unit: "connections",
    labels: &[],
    help: "Connections to `stopd.listen` that were refused",
    remedy: Do(
        "`/v1/status` shows the address and the reason of the last one. If it is a relay, check the \
         certificates on both sides. If it is not, close `stopd.listen` to that machine.",
    ),
};
