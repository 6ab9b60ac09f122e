//! Detection of expensive requests, and the rules that throttle them.

use std::path::PathBuf;

use bywash_engine::throttle;
use bywash_units::TimeSpan;

/// `[elephants]` with its resources and rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Elephants {
    /// The reaction to a finding.
    pub act: Act,
    /// The half-life of observations.
    pub half_life: TimeSpan,
    /// Patterns that are always tracked as one route, whatever is learned.
    pub always_track: Vec<String>,
    /// The observed resources; without any, nothing is searched for.
    pub resources: Vec<Resource>,
    /// The enforced rules of the file.
    pub throttles: Vec<Throttle>,
}

/// The reaction to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A finding waits for an operator's decision.
    Propose,
    /// A confident finding is throttled without an operator.
    Auto,
}

impl Act {
    /// Returns the name used in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Propose => "propose",
            Self::Auto => "auto",
        }
    }
}

/// The source of a resource's readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The exporter at this URL.
    Exporter(String),
    /// The process whose number this file contains, and all its descendants.
    ProcessFile(PathBuf),
}

/// A resource whose use is observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The operator's name for it.
    pub name: String,
    /// The metric that is read, such as `host/cpu`.
    pub read: String,
    /// The source, if it is not this host as a whole.
    pub from: Option<ReadFrom>,
    /// Units available per second; `None` takes the capacity that is read.
    pub capacity: Option<f64>,
    /// Units used per second without any request.
    pub idle: f64,
}

impl Resource {
    /// The metric name of a resource that is not read: only the holders of slots are counted.
    pub const SLOTS: &str = "gateway/slots";

    /// Returns whether the resource is read, and not only derived from held slots.
    pub fn is_read(&self) -> bool {
        self.read != Self::SLOTS
    }
}

/// A throttling rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// The pattern of the requests that it throttles.
    pub pattern: String,
    /// The reason for the rule.
    pub why: String,
    /// How the requests wait.
    pub rule: throttle::Rule,
    /// The rate of their answers in bytes per second.
    pub bytes: Option<u64>,
}
