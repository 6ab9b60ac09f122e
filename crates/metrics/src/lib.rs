//! A table of a program's metrics, from which everything else follows: the registration, the
//! reference for operators, and the check of alerts and dashboards, which name metrics.
//!
//! A metric is a `static` [`Metric`] in a [`Subject`], and a program has a list of subjects. Only
//! [`Metric::register`] registers metrics, so no metric is without its entry. Each program has a
//! test that its text and its list agree, by [`differences`].
//!
//! Source of the idea: Varnish's counters (`VSC_main.vsc`), each of which documents what it means
//! for an operator.
#![forbid(unsafe_code)]

mod differences;
mod reference;

use prometheus_client::registry::{self, Registry};

pub use differences::differences;
pub use reference::{json, reference};

/// Metrics about the same subject.
#[derive(Debug)]
pub struct Subject {
    /// The heading.
    pub title: &'static str,
    /// The subject, in one or two sentences.
    pub about: &'static str,
    /// The metrics.
    pub metrics: &'static [&'static Metric],
}

/// A family of samples with one name.
#[derive(Debug)]
pub struct Metric {
    /// The name without the suffix of its samples; see [`Metric::samples`].
    pub name: &'static str,
    /// The kind of metric.
    pub kind: MetricKind,
    /// The unit that is counted or measured.
    pub unit: &'static str,
    /// The labels that distinguish its samples.
    pub labels: &'static [Label],
    /// The meaning, in one sentence without its full stop, which the text format adds.
    pub help: &'static str,
    /// The advice to an operator.
    pub remedy: Remedy,
}

/// The kind of a metric, which says how its samples are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows until its process ends.
    Counter,
    /// A present value.
    Gauge,
    /// The number of observations below each of a list of bounds.
    Histogram,
}

/// A label, which distinguishes samples of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The label's name.
    pub name: &'static str,
    /// The meaning of its values.
    pub says: &'static str,
    /// The values that it can have.
    pub words: Words,
}

/// The values of a label.
#[derive(Clone, Copy, Debug)]
pub enum Words {
    /// A fixed list of values.
    Fixed(fn() -> Vec<&'static str>),
    /// Names from the configuration.
    Configured,
}

/// The advice to an operator about a metric.
#[derive(Clone, Copy, Debug)]
pub enum Remedy {
    /// Advice for a value that changes, or is not as it should be: look at this, do that.
    Do(&'static str),
    /// There is nothing to do; the text says what the metric is good for.
    Nothing(&'static str),
}

impl Metric {
    /// Registers the metric under its name and its help.
    pub fn register(&self, registry: &mut Registry, metric: impl registry::Metric) {
        registry.register(self.name, self.help, metric);
    }

    /// Returns the values of its only label.
    ///
    /// # Panics
    /// If it has no label or several, or if the configuration gives the label's values.
    pub fn words(&self) -> Vec<&'static str> {
        let [Label { words: Words::Fixed(words), .. }] = self.labels else {
            panic!("{} has no single label with fixed values", self.name)
        };
        words()
    }

    /// Returns the names of its samples, as queries write them.
    pub fn samples(&self) -> Vec<String> {
        let endings: &[&str] = match self.kind {
            MetricKind::Counter => &["_total"],
            MetricKind::Gauge => &[""],
            MetricKind::Histogram => &["_bucket", "_sum", "_count"],
        };
        endings.iter().map(|ending| format!("{}{ending}", self.name)).collect()
    }
}

impl MetricKind {
    /// Returns the kind's name in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Remedy {
    /// Returns the text of the advice.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Do(text) | Self::Nothing(text) => text,
        }
    }
}
