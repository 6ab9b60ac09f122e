//! What is looked for, and what is held back.

use std::path::PathBuf;

use bywash_engine::throttle;
use bywash_units::Span;

/// `[elephants]` with its resources, and rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Elephants {
    /// What is done about what was found.
    pub act: Act,
    /// After so long what was seen counts half.
    pub half_life: Span,
    /// Requests that are one kind whatever is learned.
    pub pins: Vec<String>,
    /// Whose use is looked at; nothing is looked for if there is none.
    pub resources: Vec<Resource>,
    /// Rules of the file that are carried out.
    pub throttles: Vec<Throttle>,
}

/// What is done about what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It waits for an operator's word.
    Propose,
    /// What is sure is held back without one.
    Auto,
}

impl Act {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Propose => "propose",
            Self::Auto => "auto",
        }
    }
}

/// Where a resource is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The exporter of this URL says it.
    Exporter(String),
    /// It is of the process whose number stands in this file, and of all that it has started.
    ProcessFile(PathBuf),
}

/// A resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// What operators call it.
    pub name: String,
    /// What is read: `host/cpu`.
    pub read: String,
    /// Where that is, if not on this host, or of which of its processes.
    pub from: Option<ReadFrom>,
    /// Units of it that there are in a second, if that is not as it is read.
    pub capacity: Option<f64>,
    /// Units of it that are used in a second without any request.
    pub idle: f64,
}

impl Resource {
    /// What is written where nothing is to be read, and only counted who holds the slots.
    pub const SLOTS: &str = "gateway/slots";

    /// Whether it is read, and not only counted.
    pub fn is_read(&self) -> bool {
        self.read != Self::SLOTS
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// Which requests.
    pub pattern: String,
    /// Why.
    pub why: String,
    /// How they wait.
    pub rule: throttle::Rule,
    /// Bytes a second of their answers.
    pub bytes: Option<u64>,
}
