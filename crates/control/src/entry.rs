//! An elephant, and all decisions about it.

use bywash_units::TimeSpan;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision_meta::DecisionMeta;
use crate::effect::{Effect, Gauge};
use crate::elephant::Elephant;
use crate::refused::Refused;
use crate::rule_limits::{Change, RuleLimits};
use crate::time::after;

/// A rule that ended this recently was in force during some of the last minute.
const MINUTE: TimeSpan = TimeSpan::from_secs(60);
/// The age up to which an earlier measurement of the site still says something about the present.
const FRESH: TimeSpan = TimeSpan::from_secs(3600);

/// An elephant under its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The number by which operators name it. A number is given only once.
    pub number: u32,
    /// The pattern that its requests match.
    pub pattern: String,
    /// The last finding, if there is one: a rule of the file needs no evidence.
    pub found: Option<Elephant>,
    /// When it was first found, or came into the file.
    pub since: Timestamp,
    /// When it was last found.
    pub seen: Timestamp,
    /// Whether the audit log has reported that it was found. That is reported once.
    #[serde(default)]
    pub told: bool,
    /// Whether it is here only because an operator asked for it by name. It was not found to use
    /// much.
    #[serde(default)]
    pub asked: bool,
    /// The state: proposed, rejected or ruled.
    pub state: State,
    /// The last trial, if there was one.
    pub trial: Option<Trial>,
    /// The time until which bywash applies no rule of its own, because an operator has undone a
    /// decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_alone: Option<Timestamp>,
    /// The last rule that has ended, or was replaced by another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Box<Ended>>,
    /// The revision. It changes with every decision, and whenever one ends.
    #[serde(default)]
    pub revision: u64,
}

/// The state of an elephant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No decision is in force.
    Proposed,
    /// An operator has rejected the proposal: the elephant is neither held back nor proposed for
    /// some time.
    Rejected {
        /// The decision.
        meta: DecisionMeta,
        /// The end of the rejection.
        until: Timestamp,
    },
    /// A rule is in force.
    Ruled(Rule),
}

/// A rule that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// When it ended.
    pub at: Timestamp,
    /// How the site performed before the rule, if that is known.
    #[serde(default)]
    pub before: Option<Gauge>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// The limits that it sets.
    pub limits: RuleLimits,
    /// Other routes that the pattern matches as well, and that the rule does not apply to. Empty
    /// for a rule of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<String>,
    /// The origin of the rule.
    pub origin: Origin,
    /// The author of the decision.
    pub by: String,
    /// The reason.
    pub why: String,
    /// When the rule began.
    pub since: Timestamp,
    /// When the rule ends. A rule of the file has no end.
    pub until: Option<Timestamp>,
    /// How the site performed in the last minute without a rule for these requests, if that was
    /// measured. Always absent for a rule of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Gauge>>,
}

/// The origin of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// An operator approved it.
    Operator,
    /// An operator tries it: it is short, and its effect is measured.
    Trial,
    /// The configuration file says that elephants are held back without an operator's approval.
    Auto,
    /// The configuration file contains it.
    File,
}

impl Origin {
    /// Returns the origin's name, as in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Trial => "trial",
            Self::Auto => "auto",
            Self::File => "file",
        }
    }
}

/// A trial of a rule: its prediction and its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The limits of the rule.
    pub limits: RuleLimits,
    /// The predicted effect.
    pub predicted: Option<Effect>,
    /// How the site performed before the trial, over as long a time. If another rule was in force
    /// then, it is the measurement from before that rule. If nothing is known, the gauge has zero
    /// seconds.
    pub before: Gauge,
    /// How the site performed during the trial, if the trial is over.
    pub during: Option<Gauge>,
}

impl Entry {
    /// Returns the limits of a rule with `change` applied to the usual ones.
    ///
    /// # Errors
    /// If the limits make no sense, or if there is neither a finding nor a rule that they could be
    /// based on.
    pub fn with(&self, change: Change) -> Result<RuleLimits, Refused> {
        let limits = self.usual().ok_or(Refused::Nothing(self.number))?.changed(change);
        match limits.wrong() {
            Some(wrong) => Err(Refused::RuleLimits(wrong)),
            None => Ok(limits),
        }
    }

    /// Returns whether a decision about it was taken outside the file, as far as the entry alone
    /// shows.
    pub(crate) fn was_decided(&self) -> bool {
        let holds = match &self.state {
            State::Ruled(rule) => rule.origin != Origin::File,
            State::Rejected { .. } => true,
            State::Proposed => false,
        };
        holds || self.left_alone.is_some() || self.trial.is_some()
    }

    /// Returns whether nothing is in force for it, not even that it is left alone. Such an entry
    /// can be forgotten without loss.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.state == State::Proposed && !self.is_left_alone(now)
    }

    /// Returns whether bywash must not apply a rule of its own.
    pub(crate) fn is_left_alone(&self, now: Timestamp) -> bool {
        self.left_alone.is_some_and(|until| now < until)
    }

    /// Returns when the rule in force ends, if there is one with an end.
    pub fn ends(&self) -> Option<Timestamp> {
        self.rule().and_then(|rule| rule.until)
    }

    pub(crate) const fn rule(&self) -> Option<&Rule> {
        match &self.state {
            State::Ruled(rule) => Some(rule),
            State::Proposed | State::Rejected { .. } => None,
        }
    }

    /// Returns how the site performed without a rule for these requests. That is `measured`, the
    /// time until now, if no rule was in force during it. Otherwise it is the measurement from
    /// before that rule, if it is known and recent.
    pub(crate) fn without_rule(&self, now: Timestamp, measured: Option<Gauge>) -> Option<Gauge> {
        let is_within = |at: Timestamp, most: TimeSpan| at <= now && now < after(at, most);
        let lasted =
            measured.map_or(MINUTE, |gauge| TimeSpan::from_secs_f64(gauge.seconds).max(MINUTE));
        let lately = self.ended.as_ref().filter(|ended| is_within(ended.at, lasted));
        let known = match lately {
            Some(ended) => ended.before,
            None => measured.map(|gauge| Gauge { at: Some(now), ..gauge }),
        };
        known.filter(|known| known.at.is_some_and(|at| is_within(at, FRESH)))
    }

    /// Returns the limits that a rule has by default: those of the rule in force, or the proposed
    /// ones.
    fn usual(&self) -> Option<RuleLimits> {
        match &self.state {
            State::Ruled(rule) => Some(rule.limits),
            State::Proposed | State::Rejected { .. } => {
                self.found.as_ref().map(RuleLimits::proposed)
            }
        }
    }
}
