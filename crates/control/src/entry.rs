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

/// The length of the measurement before a rule begins. If an earlier rule ended less than this long
/// before, that rule was in force during part of the measurement.
const MINUTE: TimeSpan = TimeSpan::from_secs(60);
/// A measurement of the site that is older than this is not used.
const MAX_GAUGE_AGE: TimeSpan = TimeSpan::from_secs(3600);

/// An elephant under its number, with all decisions about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The number that identifies the elephant to operators. No number is given twice.
    pub number: u32,
    /// The pattern that the elephant's requests match.
    pub pattern: String,
    /// The last finding; `None` if there was none, because a rule of the configuration file needs
    /// no evidence.
    pub found: Option<Elephant>,
    /// When the elephant was first found, or first came into the configuration file.
    pub since: Timestamp,
    /// When the elephant was last found.
    pub seen: Timestamp,
    /// Whether the audit log has reported the finding. The log reports each finding once.
    #[serde(default)]
    pub told: bool,
    /// Whether the elephant is listed only because an operator named its pattern. bywash has not
    /// found that it uses much of a resource.
    #[serde(default)]
    pub asked: bool,
    /// The state of the decisions: proposed, rejected or ruled.
    pub state: State,
    /// The last trial of a rule; `None` if there was none.
    pub trial: Option<Trial>,
    /// The time until which bywash applies no automatic rule to the elephant, because an operator
    /// has undone a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_alone: Option<Timestamp>,
    /// The last rule that ended, or was replaced by another rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Box<Ended>>,
    /// The revision of the elephant. It changes with every decision, and with the end of a
    /// decision.
    #[serde(default)]
    pub revision: u64,
}

/// The state of the decisions about an elephant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No decision is in force: the elephant is a proposal.
    Proposed,
    /// An operator has rejected the proposal. Until the end of the rejection, the elephant is
    /// neither held back nor proposed.
    Rejected {
        /// The author, the reason and the duration of the rejection.
        meta: DecisionMeta,
        /// When the rejection ends.
        until: Timestamp,
    },
    /// A rule is in force.
    Ruled(Rule),
}

/// A rule that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// When the rule ended.
    pub at: Timestamp,
    /// How the site performed before the rule; `None` if that is unknown.
    #[serde(default)]
    pub before: Option<Gauge>,
}

/// A rule in force for the requests of an elephant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// The limits that it sets.
    pub limits: RuleLimits,
    /// The patterns of other routes that the rule's pattern matches as well, and that the rule does
    /// not apply to. Empty for a rule of the configuration file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<String>,
    /// The origin of the rule: who or what decided it.
    pub origin: Origin,
    /// The author of the decision.
    pub by: String,
    /// The reason for the decision.
    pub why: String,
    /// When the rule began.
    pub since: Timestamp,
    /// When the rule ends; `None` for a rule of the configuration file, which has no end.
    pub until: Option<Timestamp>,
    /// The performance of the site in the last minute without a rule for these requests; `None` if
    /// it was not measured. The value is always `None` for a rule of the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Gauge>>,
}

/// The origin of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// An operator approved it.
    Operator,
    /// An operator tries the rule: it is short, and its effect is measured.
    Trial,
    /// `act = "auto"` in the configuration file: bywash applied the rule without an operator's
    /// approval.
    Auto,
    /// The rule is in the configuration file.
    File,
}

impl Origin {
    /// Returns the name of the origin, as the API shows it.
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
    /// The limits of the rule that is tried.
    pub limits: RuleLimits,
    /// The predicted effect; `None` if none was predicted.
    pub predicted: Option<Effect>,
    /// How the site performed before the trial, over a period as long as the trial. If another rule
    /// was in force then, this is the measurement from before that rule. If nothing was measured,
    /// the gauge covers zero seconds.
    pub before: Gauge,
    /// How the site performed during the trial; `None` until the trial is over.
    pub during: Option<Gauge>,
}

impl Entry {
    /// Returns the limits of a rule: the default limits, changed by `change`. The default limits
    /// are those of the rule in force. Without a rule in force, they are the proposed limits.
    ///
    /// # Errors
    /// If the limits are invalid, or if there is neither a finding nor a rule from which to start.
    pub fn with(&self, change: Change) -> Result<RuleLimits, Refused> {
        let limits = self.usual().ok_or(Refused::Nothing(self.number))?.changed(change);
        match limits.wrong() {
            Some(wrong) => Err(Refused::RuleLimits(wrong)),
            None => Ok(limits),
        }
    }

    /// Returns whether an operator or `auto` has taken a decision about the elephant, as far as
    /// this entry shows. A rule of the configuration file is not such a decision.
    pub(crate) fn was_decided(&self) -> bool {
        let holds = match &self.state {
            State::Ruled(rule) => rule.origin != Origin::File,
            State::Rejected { .. } => true,
            State::Proposed => false,
        };
        holds || self.left_alone.is_some() || self.trial.is_some()
    }

    /// Returns whether no decision about the elephant is in force, not even a ban on automatic
    /// rules. Such an entry can be forgotten without loss.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.state == State::Proposed && !self.is_left_alone(now)
    }

    /// Returns whether bywash must not apply an automatic rule to the elephant at `now`.
    pub(crate) fn is_left_alone(&self, now: Timestamp) -> bool {
        self.left_alone.is_some_and(|until| now < until)
    }

    /// Returns when the rule in force ends; `None` if there is no rule or it has no end.
    pub fn ends(&self) -> Option<Timestamp> {
        self.rule().and_then(|rule| rule.until)
    }

    pub(crate) const fn rule(&self) -> Option<&Rule> {
        match &self.state {
            State::Ruled(rule) => Some(rule),
            State::Proposed | State::Rejected { .. } => None,
        }
    }

    /// Returns how the site performed without a rule for these requests; `None` if that is unknown.
    /// `measured` is a measurement of the minute that ends at `now`.
    ///
    /// - If no rule was in force during that minute, the result is `measured`.
    /// - Otherwise the result is the measurement from before the last rule. A measurement older
    ///   than [`MAX_GAUGE_AGE`] is not used.
    pub(crate) fn without_rule(&self, now: Timestamp, measured: Option<Gauge>) -> Option<Gauge> {
        let is_within = |at: Timestamp, most: TimeSpan| at <= now && now < after(at, most);
        let lasted =
            measured.map_or(MINUTE, |gauge| TimeSpan::from_secs_f64(gauge.seconds).max(MINUTE));
        let lately = self.ended.as_ref().filter(|ended| is_within(ended.at, lasted));
        let known = match lately {
            Some(ended) => ended.before,
            None => measured.map(|gauge| Gauge { at: Some(now), ..gauge }),
        };
        known.filter(|known| known.at.is_some_and(|at| is_within(at, MAX_GAUGE_AGE)))
    }

    /// Returns the limits that a rule has by default: those of the rule in force, or the proposed
    /// ones. Returns `None` if there is neither a rule nor a finding.
    fn usual(&self) -> Option<RuleLimits> {
        match &self.state {
            State::Ruled(rule) => Some(rule.limits),
            State::Proposed | State::Rejected { .. } => {
                self.found.as_ref().map(RuleLimits::proposed)
            }
        }
    }
}
