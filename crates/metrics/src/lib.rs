//! A table of a program's metrics. Three things are derived from the table: the registration, the
//! reference for operators, and the check of alerts and dashboards, which name metrics.
//!
//! A metric is a `static` [`Metric`] in a [`Subject`], and a program has a list of subjects. Only
//! [`Metric::register`] registers metrics, so every metric has an entry in the table. Each program
//! has a test that compares the text that it exposes with its list, by [`differences`].
//!
//! Source of the idea: Varnish's counters (`VSC_main.vsc`), each of which documents what it means
//! for an operator.
#![forbid(unsafe_code)]

mod differences;
mod reference;

use prometheus_client::registry::{self, Registry};

pub use differences::differences;
pub use reference::{json, reference};

/// A group of metrics about the same subject.
#[derive(Debug)]
pub struct Subject {
    /// The heading in the reference.
    pub title: &'static str,
    /// The description of the subject, in one or two sentences.
    pub about: &'static str,
    /// The metrics of the subject, in the order of the reference.
    pub metrics: &'static [&'static Metric],
}

/// A metric: the family of samples that share a name.
#[derive(Debug)]
pub struct Metric {
    /// The name of the metric, without the suffix of its samples; see [`Metric::samples`].
    pub name: &'static str,
    /// The kind of metric.
    pub kind: MetricKind,
    /// The unit that is counted or measured, as text for the reference.
    pub unit: &'static str,
    /// The labels that distinguish the samples of the metric.
    pub labels: &'static [Label],
    /// The meaning, in one sentence. Its full stop is left out, because the text format adds one.
    pub help: &'static str,
    /// The advice to an operator about the metric.
    pub remedy: Remedy,
}

/// The kind of a metric, which determines how its samples are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows until its process ends.
    Counter,
    /// A value that may rise and fall.
    Gauge,
    /// The numbers of observations at or below each of several bounds, with the sum and the total
    /// number of all observations.
    Histogram,
}

/// A label, which distinguishes samples of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The label's name.
    pub name: &'static str,
    /// The meaning of the label's values.
    pub says: &'static str,
    /// The values that the label can have.
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
    /// Advice for the case that the value changes or is not as it should be: what to look at and
    /// what to do.
    Do(&'static str),
    /// There is nothing to do. The text says what the metric is useful for.
    Nothing(&'static str),
}

impl Metric {
    /// Registers `metric` in `registry` under the name and the help text of this entry.
    pub fn register(&self, registry: &mut Registry, metric: impl registry::Metric) {
        registry.register(self.name, self.help, metric);
    }

    /// Returns the values of the metric's only label.
    ///
    /// # Panics
    /// Panics if the metric has no label or several, or if the configuration gives the label's
    /// values.
    pub fn words(&self) -> Vec<&'static str> {
        let [Label { words: Words::Fixed(words), .. }] = self.labels else {
            panic!("{} has no single label with fixed values", self.name)
        };
        words()
    }

    /// Returns the names of the metric's samples, as queries write them: the name with its
    /// suffixes.
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
    /// Returns the name of the kind in the text format of Prometheus.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Remedy {
    /// Returns the text of either variant.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Do(text) | Self::Nothing(text) => text,
        }
    }
}
