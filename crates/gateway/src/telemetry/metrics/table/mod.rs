//! The table of the gateway's metrics, in the order of the reference, with a file for each few
//! subjects.
//!
//! A metric is an entry here, registered where it is counted. Tests compare
//! `docs/reference/metrics.md`, alerts and dashboard (`examples/prometheus`, `examples/grafana`)
//! with this table.

mod clients;
mod config;
mod elephants;
mod process;
mod requests;
mod runtime;
mod servers;
mod sessions;
mod slots;

use bywash_engine::Outcome;
use bywash_metrics::{Label, Subject, Words};

pub(super) use clients::*;
pub(super) use config::*;
pub(super) use elephants::*;
pub(super) use process::*;
pub(super) use requests::*;
pub(super) use runtime::*;
pub(super) use servers::*;
pub(super) use sessions::*;
pub(super) use slots::*;

/// All metrics of the gateway, by subject.
pub static METRICS: [&Subject; 12] = [
    &requests::SUBJECT,
    &slots::SUBJECT,
    &servers::SUBJECT,
    &elephants::SUBJECT,
    &clients::GONE,
    &sessions::TOKENS_SUBJECT,
    &sessions::LEVELS_SUBJECT,
    &clients::CONNECTIONS_SUBJECT,
    &clients::MESSAGES,
    &process::SUBJECT,
    &config::SUBJECT,
    &runtime::SUBJECT,
];

const CLASS: Label =
    Label { name: "class", says: "a class of the configuration", words: Words::Configured };
const LEVEL: Label =
    Label { name: "level", says: "one of `levels.names`", words: Words::Configured };
const OUTCOME: Label = Label {
    name: "outcome",
    says: "its outcome",
    words: Words::Fixed(|| Outcome::ALL.map(Outcome::name).into()),
};

/// Returns a label with these values.
const fn label(name: &'static str, says: &'static str, words: fn() -> Vec<&'static str>) -> Label {
    Label { name, says, words: Words::Fixed(words) }
}
