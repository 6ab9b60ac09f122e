//! The table of all metrics of the gateway, in the order of the reference page. Each file has the
//! metrics of one or a few subjects.
//!
//! A metric is an entry in this table, and is registered where its values are counted. Tests
//! compare the table with `docs/reference/metrics.md`, with the alerts and with the dashboard
//! (`examples/prometheus`, `examples/grafana`).

mod clients;
mod config;
mod elephants;
mod fleet;
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
pub(super) use fleet::*;
pub(super) use process::*;
pub(super) use requests::*;
pub(super) use runtime::*;
pub(super) use servers::*;
pub(super) use sessions::*;
pub(super) use slots::*;

/// All metrics of the gateway, by subject.
pub static METRICS: [&Subject; 13] = [
    &requests::SUBJECT,
    &slots::SUBJECT,
    &fleet::SUBJECT,
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

/// Returns a label with this name. `says` describes the label, and `words` returns its values.
const fn label(name: &'static str, says: &'static str, words: fn() -> Vec<&'static str>) -> Label {
    Label { name, says, words: Words::Fixed(words) }
}
