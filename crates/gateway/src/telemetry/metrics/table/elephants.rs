//! Metrics of rules that throttle elephants.

use bywash_metrics::Kind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Metric, Subject};

use super::label;
use crate::elephants::NoLane;

pub(super) static SUBJECT: Subject = Subject {
    title: "Elephants",
    about: "What rules hold back. Which rules there are, whose and why: `bywash elephants list`.",
    metrics: &[&HELD, &LANES, &HELD_ANSWERS],
};

pub(crate) static HELD: Metric = Metric {
    name: "bywash_held",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Requests that wait under a rule for elephants",
    remedy: Do(
        "If it does not fall: the rule lets fewer run than come; let it run more at once, or undo it once the crowd has \
         gone (`bywash elephants undo`).",
    ),
};
pub(crate) static LANES: Metric = Metric {
    name: "bywash_lanes",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "1 while there are lanes of the device for elephants' answers",
    remedy: Do(
        "If it was 1: has `bywash shaper` ended, or has the device come anew? Without lanes buckets hold back.",
    ),
};
pub(crate) static HELD_ANSWERS: Metric = Metric {
    name: "bywash_held_answers",
    kind: Counter,
    unit: "answers",
    labels: &[label("lane", "`yes`, or why there is none for it", || {
        ["yes"].into_iter().chain(NoLane::all().map(NoLane::name)).collect()
    })],
    help: "Answers whose bytes a rule holds back: by a lane of the network device (yes), or by a bucket and why",
    remedy: Nothing(
        "It says by what answers are held back. `not_permitted`: the gateway wants `CAP_NET_RAW` for lanes. `unseen`: \
         its sandbox wants `AF_NETLINK`.",
    ),
};
