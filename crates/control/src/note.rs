//! A line of the audit log: the decision, its author, its reason and its end.

use bywash_terminal::text::escaped;
use bywash_units::TimeSpan;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision_meta::DecisionMeta;
use crate::mode::Mode;
use crate::rule_limits::RuleLimits;
use crate::time::began_by;

/// A line of the audit log: a decision, or an event such as a reload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// When the event happened.
    pub at: Timestamp,
    /// The subject of the event.
    #[serde(flatten)]
    pub subject: Subject,
    /// The kind of event.
    pub what: What,
    /// The author: an operator's name, `bywash` if a decision reached its end, or `the file` for
    /// the content of the configuration file.
    pub by: String,
    /// The reason for the decision.
    pub why: String,
    /// The limits of the rule from now on; absent if no rule begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RuleLimits>,
    /// When the decision ends; absent if it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why the decision could not be written to disk at once; absent if it was. An unwritten
    /// decision holds only until the process ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// The gateway and the revision of a decision that holds at all gateways of a fleet; absent if
    /// the decision holds only here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetStamp>,
}

/// The gateway at which an operator made a decision for the fleet, and the decision's revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FleetStamp {
    /// The revision. The decision with the larger revision holds, if two are about one subject. If
    /// the revisions are equal, the one of the gateway whose name comes later holds.
    pub revision: u64,
    /// The name of the gateway.
    pub gateway: String,
}

/// The author of the decisions that bywash takes without an operator.
pub const BYWASH: &str = "bywash";
/// The author of the content of the configuration file.
pub const CONFIG_FILE: &str = "the file";

impl Note {
    /// Returns the author, with the gateway at which the decision was made if it holds for a fleet.
    /// The text is safe to show in a terminal.
    pub fn author(&self) -> String {
        let gateway = self.fleet.as_ref().map(|stamp| escaped(&stamp.gateway));
        let at = gateway.map(|gateway| format!(" at {gateway}"));
        escaped(&self.by) + &at.unwrap_or_default()
    }

    /// Returns whether an operator made the decision. No operator has one of the reserved names.
    pub(crate) fn is_of_operator(&self) -> bool {
        let decides = match self.what {
            What::Approved | What::Tried | What::Rejected | What::Overridden | What::Undone => true,
            What::Proposed | What::Asked | What::Ended | What::Reloaded => false,
        };
        decides && !is_reserved(&self.by)
    }

    /// Returns the author, reason and duration of the decision. A decision without an end gets an
    /// hour, which is a permitted duration.
    pub(crate) fn meta(&self) -> DecisionMeta {
        let meta = DecisionMeta {
            by: self.by.clone(),
            why: self.why.clone(),
            lasts: TimeSpan::from_secs(3600),
        };
        let lasts = self.until.map(|until| self.at.duration_until(until).unsigned_abs());
        DecisionMeta { lasts: lasts.map_or(meta.lasts, TimeSpan::from), ..meta }
    }

    /// Returns the decision of another gateway with times that are possible by the clock of this one:
    /// it begins at `now` at the latest, and lasts no longer than it was made for.
    #[must_use]
    pub fn begun_by(mut self, now: Timestamp) -> Self {
        let (at, until) = began_by(now, self.at, self.until.unwrap_or(self.at));
        self.at = at;
        self.until = self.until.map(|_| until);
        self
    }

    /// Returns when the decision begins and ends, as seen at `now` by the clock of this gateway;
    /// `None` if it has ended, or if it puts nothing in force.
    pub(crate) fn holds(&self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let until = self.until.filter(|_| self.what != What::Undone)?;
        let (since, until) = began_by(now, self.at, until);
        (now < until).then_some((since, until))
    }
}

/// Returns whether no operator may have this name, because bywash uses it for decisions that no operator makes.
pub fn is_reserved(name: &str) -> bool {
    [BYWASH, CONFIG_FILE].contains(&name.trim())
}

/// The subject of an event in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Subject {
    /// An elephant: requests that cause much of the load.
    Elephant {
        /// The elephant's number.
        number: u32,
        /// The pattern that its requests match.
        pattern: String,
    },
    /// The mode of a class.
    Class {
        /// The class's name.
        class: String,
        /// The mode that the override sets.
        mode: Mode,
        /// The percentage of clients that the mode applies to.
        enforce_percent: u8,
    },
    /// The level of a population of clients.
    Population {
        /// The population's name: sixteen hexadecimal digits.
        population: String,
        /// The level that the override sets.
        level: u8,
    },
    /// The bypass, during which the gateway takes no decisions.
    Bypass,
    /// The configuration file.
    File,
}

impl Subject {
    /// Returns the subject as a text that is safe to show in a terminal.
    pub fn shown(&self) -> String {
        match self {
            Self::Elephant { number, pattern } => format!("{number} {}", escaped(pattern)),
            Self::Class { class, mode, enforce_percent } => {
                format!("{} {} {enforce_percent} %", escaped(class), mode.name())
            }
            Self::Population { population, level } => {
                format!("population {} level {level}", escaped(population))
            }
            Self::Bypass => "bypass".into(),
            Self::File => "the file".into(),
        }
    }
}

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An elephant was found.
    Proposed,
    /// An operator named a route to see the effect of a rule for it, although bywash had not found
    /// it to be an elephant.
    Asked,
    /// A rule began.
    Approved,
    /// A trial of a rule began.
    Tried,
    /// A proposal was rejected: the elephant is not held back.
    Rejected,
    /// A setting of the configuration file was overridden.
    Overridden,
    /// A decision was undone.
    Undone,
    /// A decision reached its end.
    Ended,
    /// The configuration file was reloaded and is in force.
    Reloaded,
}

impl What {
    /// Returns the name of the kind, as the API shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Asked => "asked",
            Self::Approved => "approved",
            Self::Tried => "tried",
            Self::Rejected => "rejected",
            Self::Overridden => "overridden",
            Self::Undone => "undone",
            Self::Ended => "ended",
            Self::Reloaded => "reloaded",
        }
    }
}
