//! What a program counts, as a table that others follow from: what is registered, the reference for operators, and
//! the check of alerts and dashboards, which name metrics.
//!
//! A metric is a `static` [`Metric`] and stands in a [`Subject`]; a program has a list of these. Nothing is registered
//! but by [`Metric::register`], so nothing without its entry. That a program's text and its list say the same is a
//! test of the program, by [`differences`].
//!
//! Source of the idea: Varnish's counters (`VSC_main.vsc`), each of which says what an operator makes of it.
#![forbid(unsafe_code)]

mod differences;
mod reference;

use prometheus_client::registry::{self, Registry};

pub use differences::differences;
pub use reference::{json, reference};

/// Metrics that tell of the same thing.
#[derive(Debug)]
pub struct Subject {
    /// A heading.
    pub title: &'static str,
    /// What they tell of, in one or two sentences.
    pub about: &'static str,
    /// Each of them.
    pub metrics: &'static [&'static Metric],
}

/// A family of samples with one name.
#[derive(Debug)]
pub struct Metric {
    /// Without the ending that samples of its kind have: see [`Metric::samples`].
    pub name: &'static str,
    /// How its samples are to be read.
    pub kind: Kind,
    /// What is counted or measured.
    pub unit: &'static str,
    /// What tells its samples apart.
    pub labels: &'static [Label],
    /// What it says, in one sentence without its full stop, which the text format adds.
    pub help: &'static str,
    /// What an operator makes of it.
    pub remedy: Remedy,
}

/// How samples are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until its process ends.
    Counter,
    /// It is what it is now.
    Gauge,
    /// How many lie below each of a list of bounds.
    Histogram,
}

/// What tells samples of a metric apart.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// What its values say.
    pub says: &'static str,
    /// Which values it has.
    pub words: Words,
}

/// The values of a label.
#[derive(Clone, Copy, Debug)]
pub enum Words {
    /// All of them.
    Fixed(fn() -> Vec<&'static str>),
    /// Names that stand in the configuration.
    Configured,
}

/// What an operator makes of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Remedy {
    /// When it moves, or is not what it should be: look at this, do that.
    Do(&'static str),
    /// There is nothing to be done about it; this is what it is good for.
    Nothing(&'static str),
}

impl Metric {
    /// Lets a program's text have it.
    pub fn register(&self, registry: &mut Registry, metric: impl registry::Metric) {
        registry.register(self.name, self.help, metric);
    }

    /// The words of its only label.
    ///
    /// # Panics
    /// When it has another number of labels, or one whose words the configuration gives.
    pub fn words(&self) -> Vec<&'static str> {
        let [Label { words: Words::Fixed(words), .. }] = self.labels else {
            panic!("{} has no single label with fixed words", self.name)
        };
        words()
    }

    /// The names of its samples, as queries write them.
    pub fn samples(&self) -> Vec<String> {
        let endings: &[&str] = match self.kind {
            Kind::Counter => &["_total"],
            Kind::Gauge => &[""],
            Kind::Histogram => &["_bucket", "_sum", "_count"],
        };
        endings.iter().map(|ending| format!("{}{ending}", self.name)).collect()
    }
}

impl Kind {
    /// The word for it in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Remedy {
    /// What it says.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Do(text) | Self::Nothing(text) => text,
        }
    }
}
