//! An elephant, and all that was decided about it.

use bywash_units::Span;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::book::{Refused, after};
use crate::effect::{Effect, Gauge};
use crate::elephant::Elephant;
use crate::grants::{Change, Grants};
use crate::word::Word;

/// A rule so lately makes the last minute its own.
const MINUTE: Span = Span::from_secs(60);
/// How a site was longer ago says nothing of now.
const FRESH: Span = Span::from_secs(3600);

/// An elephant under its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// What operators call it by. Given once.
    pub number: u32,
    /// Which requests.
    pub pattern: String,
    /// What was found last, if it was found: a rule of the file needs no evidence.
    pub found: Option<Elephant>,
    /// When it was found first, or came into the file.
    pub since: Timestamp,
    /// When it was found last.
    pub seen: Timestamp,
    /// Whether it was said to be found, as is said once.
    #[serde(default)]
    pub told: bool,
    /// Nobody found that it uses much: an operator has asked for it by name.
    #[serde(default)]
    pub asked: bool,
    /// What holds of it.
    pub state: State,
    /// The last trial, if there was one.
    pub trial: Option<Trial>,
    /// An operator has undone what was decided: nobody holds it back without asking before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_alone: Option<Timestamp>,
    /// The last rule that has ended, or gave way to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Box<Ended>>,
    /// Another one whenever something was decided, or has ended.
    #[serde(default)]
    pub revision: u64,
}

/// What holds of an elephant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody has decided yet, or what was decided is over.
    Proposed,
    /// It is not to be held back, and not to be proposed, until then.
    Rejected {
        /// Whose word that is.
        word: Word,
        /// Until when.
        until: Timestamp,
    },
    /// It is held back.
    Ruled(Rule),
}

/// A rule that holds no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// When it has ended.
    pub at: Timestamp,
    /// How the site was before it, if that is known.
    #[serde(default)]
    pub before: Option<Gauge>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// What it grants.
    pub grants: Grants,
    /// Kinds of their own that the pattern matches too, and that the rule leaves alone: none if it stands in the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// Who decided it.
    pub by: String,
    /// Why.
    pub why: String,
    /// Since when it holds.
    pub since: Timestamp,
    /// When it ends; never where the file says so.
    pub until: Option<Timestamp>,
    /// How the site was in the last minute without a rule for these requests, if that was measured; never of the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Gauge>>,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// An operator has approved it.
    Operator,
    /// An operator tries it: it is measured, and short.
    Trial,
    /// The file says that elephants are to be held back without asking.
    Auto,
    /// It stands in the file.
    File,
}

/// What a rule was tried for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The rule.
    pub grants: Grants,
    /// What was predicted.
    pub predicted: Option<Effect>,
    /// How the site was before, for as long as the trial or as it was before another rule; of no seconds if that is not known.
    pub before: Gauge,
    /// How it was meanwhile, if the trial is over.
    pub during: Option<Gauge>,
}

/// When something holds that has begun by now: no longer than was said.
pub(crate) fn began_by(
    now: Timestamp,
    since: Timestamp,
    until: Timestamp,
) -> (Timestamp, Timestamp) {
    let lasts = until.duration_since(since);
    let ends = now.checked_add(lasts).unwrap_or(until);
    (since.min(now), until.min(ends))
}

impl Entry {
    /// What a rule would grant of which this is to be otherwise than usual.
    ///
    /// # Errors
    /// If it makes no sense, or nothing was found or decided yet that it could follow from.
    pub fn with(&self, change: Change) -> Result<Grants, Refused> {
        let grants = self.usual().ok_or(Refused::Nothing(self.number))?.changed(change);
        match grants.wrong() {
            Some(wrong) => Err(Refused::Grants(wrong)),
            None => Ok(grants),
        }
    }

    /// Whether somebody has decided of it what does not stand in the file, as far as can be told from it alone.
    pub(crate) fn was_decided(&self) -> bool {
        let holds = match &self.state {
            State::Ruled(rule) => rule.origin != Origin::File,
            State::Rejected { .. } => true,
            State::Proposed => false,
        };
        holds || self.left_alone.is_some() || self.trial.is_some()
    }

    /// Whether nothing holds of it, not even that it is left alone: nothing is lost if it is forgotten.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.state == State::Proposed && !self.is_left_alone(now)
    }

    /// Whether nobody is to hold it back without asking.
    pub(crate) fn is_left_alone(&self, now: Timestamp) -> bool {
        self.left_alone.is_some_and(|until| now < until)
    }

    /// Returns when the rule that holds ends, if there is one and it does.
    pub fn ends(&self) -> Option<Timestamp> {
        self.rule().and_then(|rule| rule.until)
    }

    pub(crate) const fn rule(&self) -> Option<&Rule> {
        match &self.state {
            State::Ruled(rule) => Some(rule),
            State::Proposed | State::Rejected { .. } => None,
        }
    }

    /// How the site was without a rule for these requests: in the time until now that was measured, if that was none's. Else as
    /// it was before that rule, if that is known and not long ago.
    pub(crate) fn without_rule(&self, now: Timestamp, measured: Option<Gauge>) -> Option<Gauge> {
        let is_within = |at: Timestamp, most: Span| at <= now && now < after(at, most);
        let lasted =
            measured.map_or(MINUTE, |gauge| Span::from_secs_f64(gauge.seconds).max(MINUTE));
        let lately = self.ended.as_ref().filter(|ended| is_within(ended.at, lasted));
        let known = match lately {
            Some(ended) => ended.before,
            None => measured.map(|gauge| Gauge { at: Some(now), ..gauge }),
        };
        known.filter(|known| known.at.is_some_and(|at| is_within(at, FRESH)))
    }

    /// What a rule would grant if nobody says otherwise: what it grants already, or what is proposed.
    fn usual(&self) -> Option<Grants> {
        match &self.state {
            State::Ruled(rule) => Some(rule.grants),
            State::Proposed | State::Rejected { .. } => self.found.as_ref().map(Grants::proposed),
        }
    }
}
