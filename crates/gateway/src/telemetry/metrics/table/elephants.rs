//! The metrics of the rules that throttle elephants.

use bywash_metrics::MetricKind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Metric, Subject};

use super::label;
use crate::elephants::NoLane;

pub(super) static SUBJECT: Subject = Subject {
    title: "Elephants",
    about: "The requests and answers that rules limit. `bywash elephants list` shows the rules, \
            their authors and their reasons.",
    metrics: &[&THROTTLED_WAITING, &LANES, &THROTTLED_ANSWERS],
};

pub(crate) static THROTTLED_WAITING: Metric = Metric {
    name: "bywash_throttled_waiting",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests that wait under a rule for elephants",
    remedy: Do(
        "If it does not fall, more such requests come than the rule lets run. Raise the limit of \
         the rule, or undo the rule once the rush is over (`bywash elephants undo`).",
    ),
};
pub(crate) static LANES: Metric = Metric {
    name: "bywash_lanes",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 while the device has lanes for answers to elephants",
    remedy: Do(
        "If it was 1 before, either `bywash shaper` has ended, or the device was removed and \
         created again. Without lanes, token buckets limit the answers.",
    ),
};
pub(crate) static THROTTLED_ANSWERS: Metric = Metric {
    name: "bywash_throttled_answers",
    kind: Counter,
    unit: "answers",
    labels: &[label("lane", "`yes`, or why the answer has no lane", || {
        ["yes"].into_iter().chain(NoLane::all().map(NoLane::name)).collect()
    })],
    help: "Answers whose bytes a rule limits: by a lane of the network device (yes), or by a token \
           bucket and why",
    remedy: Nothing(
        "It shows what limits the answers. `not_permitted`: the gateway needs `CAP_NET_RAW` for \
         lanes. `unseen`: its sandbox needs `AF_NETLINK`.",
    ),
};
