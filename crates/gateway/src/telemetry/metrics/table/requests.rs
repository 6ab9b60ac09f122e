//! The metrics of requests: their outcomes, the decisions with their reasons, and times.

use bywash_config::Mode;
use bywash_engine::{Reason, Standing, Tier};
use bywash_history::Shadowed;
use bywash_metrics::MetricKind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject};

use super::super::labels::Unread;
use super::{CLASS, OUTCOME, label};

pub(super) static SUBJECT: Subject = Subject {
    title: "Requests",
    about: "Whether the important requests are served, which requests are refused and why, and how \
            long requests take. `bywash explain NAME` shows one request.",
    metrics: &[
        &REQUESTS,
        &RESPONSES,
        &DECISIONS,
        &STANDINGS,
        &SHADOW_REQUESTS,
        &WORK_SECONDS,
        &QUEUE_WAIT_SECONDS,
        &SERVICE_SECONDS,
        &WAITING,
        &REVENUE,
        &SUCCESS_UNREAD,
        &CLASS_INFO,
    ],
};

const MODE: Label =
    label("mode", "`enforce` if the gateway carried it out, `observe` if not", || {
        [Mode::Observe, Mode::Enforce].map(Mode::name).into()
    });
const REASON: Label = label("reason", "why", || {
    Reason::ALL.iter().map(|reason| reason.name()).chain([STILL_WAITING]).collect()
});
/// The value of the label `reason` for a request that was only observed, and that ended before the
/// engine would have granted a slot.
pub(crate) const STILL_WAITING: &str = "still_waiting";
const WOULD: Label = label(
    "would",
    "`run` as it did, `refused` before it ran, `stopped` while it ran, or still `waiting` when it ended",
    || Shadowed::ALL.map(Shadowed::name).into(),
);
const STANDING: Label =
    label("standing", "what the session had proven", || Standing::ALL.map(Standing::name).into());
const KIND: Label =
    label("kind", "`useful` of requests answered in time, `wasted` of all others", || {
        vec![USEFUL, WASTED]
    });
pub(crate) const USEFUL: &str = "useful";
pub(crate) const WASTED: &str = "wasted";
const TIER: Label = label("tier", "the tier of the class", || TIERS.map(Tier::name).into());
const TIERS: [Tier; 2] = [Tier::Transaction, Tier::Browsing];

pub(crate) static REQUESTS: Metric = Metric {
    name: "bywash_requests",
    kind: Counter,
    unit: "requests",
    labels: &[CLASS, OUTCOME],
    help: "Requests by outcome",
    remedy: Do("`shed`, `expired`: more requests come than the application can serve; \
                bywash_decisions_total says why each was refused. `late`, `orphaned`: requests are \
                served too late; let fewer wait (`queue.max_wait`, `upstream.limit`). \
                `upstream_error`: check the servers. `terminated`: raise `run_max` if such answers \
                are useful. `throttled`: `bywash elephants list` shows by which rule."),
};
pub(crate) static RESPONSES: Metric = Metric {
    name: "bywash_responses",
    kind: Counter,
    unit: "answers",
    labels: &[
        Label {
            says: "a class of the configuration, or `-` if the message was not a valid request",
            ..CLASS
        },
        label("code", "the class of the status code", || CODES.into()),
        label(
            "source",
            "`upstream`: the application's answer; `gateway`: an answer of bywash itself",
            || vec![UPSTREAM, GATEWAY],
        ),
    ],
    help: "Answers to clients, counted at their end; a request whose client left earlier has none",
    remedy: Do(
        "`5xx` of the `upstream`: check the application's log; bywash_server_errors_total says \
         which server. `5xx` of the `gateway`: refusals and failed servers, see \
         bywash_requests_total and bywash_decisions_total. `4xx` of the `gateway`: see \
         bywash_malformed_messages_total, `client_limits` and `principal_cap`.",
    ),
};
/// The classes of status codes, as values of a label.
pub(crate) const CODES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
pub(crate) const UPSTREAM: &str = "upstream";
pub(crate) const GATEWAY: &str = "gateway";
/// The value of the label `class` for answers without a class. No configured class can have this
/// name.
pub(crate) const NO_CLASS: &str = "-";
pub(crate) static DECISIONS: Metric = Metric {
    name: "bywash_decisions",
    kind: Counter,
    unit: "decisions",
    labels: &[CLASS, MODE, REASON],
    help: "Decisions of the engine; in mode observe, the gateway did not carry them out",
    remedy: Do(
        "`queue_full`, `evicted`, `waited_too_long`: add capacity, or reduce requests (`bywash \
         elephants list` shows which cause the load); a longer queue only makes waits longer. \
         `principal_cap`, `set_back`: find the session or address. `preempted`, `ran_too_long`: as \
         `terminated` above. docs/reference/refusals.md explains each reason.",
    ),
};
pub(crate) static STANDINGS: Metric = Metric {
    name: "bywash_standings",
    kind: Counter,
    unit: "requests",
    labels: &[CLASS, STANDING],
    help: "Requests by what their session had proven; bypassed requests are not counted",
    remedy: Do(
        "If a class of purchases has only `new` requests, sessions are not recognised: check \
         `identify.session`. If it has only `in_progress` requests, no session is served a class \
         that its `requires` names.",
    ),
};
pub(crate) static SHADOW_REQUESTS: Metric = Metric {
    name: "bywash_shadow_requests",
    kind: Counter,
    unit: "requests",
    labels: &[CLASS, WOULD],
    help: "Observed requests, by what the gateway would have done with them if it enforced",
    remedy: Do(
        "Check it before you set a class to `enforce`. If more would be `refused` than you want, \
         raise `upstream.limit` first. `waiting` means that the limit is lower than the number of \
         requests that the application really works on at once.",
    ),
};
pub(crate) static WORK_SECONDS: Metric = Metric {
    name: "bywash_work_seconds",
    kind: Counter,
    unit: "seconds",
    labels: &[CLASS, KIND],
    help: "Service time in seconds: useful for requests answered in time, wasted for all others",
    remedy: Do("If much is wasted, bywash_requests_total says on which outcome. `orphaned`: the \
                application works on for clients that have left; let it stop (the stop daemon, the \
                SDKs). `late`: lower `upstream.limit`. `upstream_error`: check the servers."),
};
pub(crate) static QUEUE_WAIT_SECONDS: Metric = Metric {
    name: "bywash_queue_wait_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[CLASS],
    help: "Time from arrival to the start of service, or to the end of a request that never ran",
    remedy: Do(
        "If an important class waits long, check that its tier is `transaction`, that it has \
         `requires`, and that its session is known. If all classes wait long, a shorter \
         `queue.max_wait` refuses sooner; only more capacity serves more.",
    ),
};
pub(crate) static SERVICE_SECONDS: Metric = Metric {
    name: "bywash_service_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[CLASS],
    help: "Time from the start of service until the gateway has written the whole answer to the \
           client's connection",
    remedy: Do(
        "If it grows with bywash_running, the limit is higher than the application can work on at \
         once: lower `upstream.limit`, or let the gateway find it (`concurrency.policy = \
         \"slope\"`). If it grows alone, the application or its database has become slower.",
    ),
};
pub(crate) static WAITING: Metric = Metric {
    name: "bywash_waiting",
    kind: Gauge,
    unit: "requests",
    labels: &[CLASS],
    help: "Requests that wait for a slot; in mode observe, requests that would wait",
    remedy: Do("If it never falls to 0, more requests come than the application can serve: see \
                bywash_decisions_total."),
};
pub(crate) static REVENUE: Metric = Metric {
    name: "bywash_revenue",
    kind: Counter,
    unit: "the unit of `revenue`",
    labels: &[CLASS],
    help: "Revenue of successful answers, by the `revenue` of their class",
    remedy: Do(
        "If it stands still while transactions are served, check that the page with `revenue` \
         still has the same path and status, and that the application still sends \
         `revenue_header`.",
    ),
};
pub(crate) static SUCCESS_UNREAD: Metric = Metric {
    name: "bywash_success_unread",
    kind: Counter,
    unit: "answers",
    labels: &[
        CLASS,
        label(
            "cause",
            "`compressed`: the answer was compressed; `too_long`: it was longer than 16 KiB",
            || Unread::ALL.map(Unread::name).into(),
        ),
    ],
    help: "Answers that the gateway does not count as a success, because it could not read their \
           JSON",
    remedy: Do(
        "`compressed`: let the application not compress these answers, or enforce the class for \
         all clients. `too_long`: choose a condition on the status or on a header field for \
         `success`.",
    ),
};
pub(crate) static CLASS_INFO: Metric = Metric {
    name: "bywash_class_info",
    kind: Gauge,
    unit: "always 1",
    labels: &[CLASS, TIER],
    help: "1 for each class of the configuration in force, with its tier",
    remedy: Nothing(
        "Queries join tiers with it: `… * on (job, instance, class) group_left (tier) \
         bywash_class_info`.",
    ),
};
