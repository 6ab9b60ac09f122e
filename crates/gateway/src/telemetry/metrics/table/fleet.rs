//! The metrics of a fleet: gateways that share the slots of one application.

use bywash_metrics::MetricKind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Metric, Subject};

pub(super) static SUBJECT: Subject = Subject {
    title: "Fleet",
    about: "Gateways that share the slots of one application (`[fleet]`). Without a fleet, all are \
            0.",
    metrics: &[&FLEET_CONNECTED, &FLEET_SHARE, &FLEET_GATEWAYS, &FLEET_DIFFERENCES, &FLEET_IGNORED],
};

pub(crate) static FLEET_CONNECTED: Metric = Metric {
    name: "bywash_fleet_connected",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "Whether the gateway is connected to a NATS server",
    remedy: Do(
        "If it is 0, the gateway uses its own share of the slots, and requests are served. \
         `bywash fleet status` says why there is no connection.",
    ),
};
pub(crate) static FLEET_SHARE: Metric = Metric {
    name: "bywash_fleet_share",
    kind: Gauge,
    unit: "requests",
    labels: &[],
    help: "Slots that the gateway owns and uses without contact to others",
    remedy: Nothing("Compare bywash_limit with it: above it, the gateway has borrowed slots."),
};
pub(crate) static FLEET_GATEWAYS: Metric = Metric {
    name: "bywash_fleet_gateways",
    kind: Gauge,
    unit: "gateways",
    labels: &[],
    help: "Gateways of the fleet that were heard in the last three seconds, with this one",
    remedy: Do(
        "If it is below the number of `fleet.gateways`, the shares of the others are not used. \
         Start them again, or take them out of the list of every gateway.",
    ),
};
pub(crate) static FLEET_DIFFERENCES: Metric = Metric {
    name: "bywash_fleet_differences",
    kind: Gauge,
    unit: "differences",
    labels: &[],
    help: "Differences of other gateways from this one: version, configuration, limit or clock",
    remedy: Do("`bywash fleet status` lists them. Service goes on; make the gateways equal."),
};
pub(crate) static FLEET_IGNORED: Metric = Metric {
    name: "bywash_fleet_ignored_messages",
    kind: Counter,
    unit: "messages",
    labels: &[],
    help: "Messages of the fleet that this gateway has ignored since its start",
    remedy: Do("`bywash fleet status` lists the reasons, and the log names each once."),
};
