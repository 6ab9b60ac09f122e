//! The resolved settings of the detection of expensive requests, and the rules that throttle them.

use std::path::PathBuf;

use bywash_engine::throttle;
use bywash_units::TimeSpan;

/// The settings of `[elephants]`, with all resources and rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Elephants {
    /// The action on a finding.
    pub act: Act,
    /// The time after which an observation counts half.
    pub half_life: TimeSpan,
    /// The patterns of requests that always form one route each, whatever the gateway learns.
    pub always_track: Vec<String>,
    /// The resources whose use is observed. If empty, no expensive requests are searched for.
    pub resources: Vec<Resource>,
    /// The throttling rules of the file that are enforced.
    pub throttles: Vec<Throttle>,
}

/// The action on a finding.
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

/// The source from which the use of a resource is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The exporter of metrics at this URL.
    Exporter(String),
    /// The process whose ID is in this file, and all its descendants.
    ProcessFile(PathBuf),
}

/// A resource whose use is observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The operator's name for the resource.
    pub name: String,
    /// The metric that is read, such as `host/cpu`.
    pub read: String,
    /// The source of the readings; `None` is this host as a whole.
    pub from: Option<ReadFrom>,
    /// The capacity in units per second; `None` uses the capacity that the source reports.
    pub capacity: Option<f64>,
    /// The use without any request, in units per second.
    pub idle: f64,
}

impl Resource {
    /// The metric name of the slots, a resource that is not read. Its use is counted from the
    /// requests that hold slots.
    pub const SLOTS: &str = "gateway/slots";

    /// Returns whether the resource is read from a source, and not counted from the requests that
    /// hold slots.
    pub fn is_read(&self) -> bool {
        self.read != Self::SLOTS
    }
}

/// A throttling rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// The pattern of the requests that the rule throttles.
    pub pattern: String,
    /// The reason for the rule.
    pub why: String,
    /// The limits on running and waiting requests.
    pub rule: throttle::Rule,
    /// The maximum rate of the answers to all these requests together, in bytes per second; `None`
    /// is unlimited.
    pub bytes: Option<u64>,
}
