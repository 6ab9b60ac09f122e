//! The store of all elephants with their rules. Only this module changes them, through findings
//! (`found`), operators' decisions (`decisions`), the configuration file (`file`), and the passage
//! of time (this file).

mod decisions;
mod exempt;
mod export;
mod file;
mod found;

use bywash_engine::{RuleId, throttle};
use bywash_units::TimeSpan;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decision_meta::DecisionMeta;
use crate::effect::Gauge;
use crate::entry::{Ended, Entry, Origin, Rule, State};
use crate::note::{BYWASH, Note, Subject, What};
use crate::refused::{MOST_ENTRIES, MOST_RULES, Refused};
use crate::rule_limits::RuleLimits;
use crate::text::next_revision;
use crate::time::{after, began_by};

pub use file::FileRule;
pub use found::Act;

/// The time after which an elephant without a decision is forgotten, counted from its last finding.
const RETENTION: TimeSpan = TimeSpan::from_secs(7 * 86_400);
/// The time after which an elephant is forgotten that is listed only because an operator named its
/// pattern. It applies if there was no trial and no decision is in force. The time starts again
/// whenever the elephant is named, found or decided on.
const ASKED_RETENTION: TimeSpan = TimeSpan::from_secs(3600);

/// Why a stored document cannot be read: the text is not such a document.
#[derive(Debug, thiserror::Error)]
#[error("the document is not one of elephants: {0}")]
pub struct RuleStoreError(#[from] serde_json::Error);

/// A rule in force, as the gateway applies it.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// The elephant's number, which identifies its rule.
    pub id: RuleId,
    /// The pattern of the requests that the rule applies to.
    pub pattern: String,
    /// The patterns of requests that the rule does not apply to.
    pub exempt: Vec<String>,
    /// The limits on waiting and running requests.
    pub rule: throttle::Rule,
    /// The maximum rate of all responses together, in bytes per second; `None` if there is no such
    /// limit.
    pub bytes: Option<u64>,
}

/// The version of the document that [`RuleStore::text`] writes.
const VERSION: u32 = 1;

/// The store of all elephants. See the documentation of the module. Unknown fields, from a later
/// version, are ignored when the document is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleStore {
    /// The version of the document when it was written, for people. It is 0 for a document that was
    /// written before versions were introduced.
    #[serde(default)]
    version: u32,
    entries: Vec<Entry>,
    /// The last number that was given to an elephant.
    next: u32,
    /// Whether an operator or `auto` ever took a decision, even if the decision was undone or has
    /// ended since.
    #[serde(default)]
    decided: bool,
}

impl RuleStore {
    /// Reads a document that [`RuleStore::text`] returned earlier. Decisions that have ended since
    /// are kept until the next [`RuleStore::tick`] ends them. Rules that no operator can approve
    /// are dropped.
    ///
    /// # Errors
    /// If the text is not such a document.
    pub fn read(text: &str) -> Result<Self, RuleStoreError> {
        let mut store: Self = serde_json::from_str(text)?;
        store.version = 0;
        store.entries.truncate(MOST_ENTRIES);
        // The stored file may have been edited by hand: a rule that no operator can approve is
        // dropped.
        for entry in &mut store.entries {
            if matches!(&entry.state, State::Ruled(rule) if rule.limits.wrong().is_some()) {
                entry.state = State::Proposed;
            }
        }
        let last = store.entries.iter().map(|entry| entry.number).max().unwrap_or(0);
        store.next = store.next.max(last);
        store.decided |= store.entries.iter().any(Entry::was_decided);
        Ok(store)
    }

    /// Returns the document to be stored, which [`RuleStore::read`] reads.
    ///
    /// # Panics
    /// Never.
    pub fn text(&self) -> String {
        let written = Self { version: VERSION, ..self.clone() };
        serde_json::to_string_pretty(&written).expect("a rule store is made of numbers and texts")
    }

    /// Corrects decisions that were taken while the clock was ahead. Afterwards no decision ends
    /// later than its duration after `now`, and no ban on automatic rules lasts longer than the
    /// longest permitted decision.
    pub fn began_by(&mut self, now: Timestamp) {
        for entry in &mut self.entries {
            (entry.since, entry.seen) = (entry.since.min(now), entry.seen.min(now));
            if let Some(ended) = &mut entry.ended {
                ended.at = ended.at.min(now);
            }
            if let Some(until) = &mut entry.left_alone {
                *until = (*until).min(after(now, DecisionMeta::LASTS.1));
            }
            match &mut entry.state {
                State::Ruled(Rule { since, until: Some(until), .. }) => {
                    (*since, *until) = began_by(now, *since, *until);
                }
                State::Rejected { meta, until } => *until = (*until).min(after(now, meta.lasts)),
                State::Ruled(_) | State::Proposed => {}
            }
        }
    }

    /// Returns all elephants, in the order of their numbers.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the elephant with this number.
    ///
    /// # Errors
    /// If there is no elephant with this number.
    pub fn entry(&self, number: u32) -> Result<&Entry, Refused> {
        self.entries.iter().find(|entry| entry.number == number).ok_or(Refused::Unknown(number))
    }

    /// Returns whether an operator or `auto` ever took a decision, even if the decision was undone
    /// or has ended since. A rule of the configuration file is not a decision.
    pub const fn was_decided(&self) -> bool {
        self.decided
    }

    /// Continues the numbering of `other`: new elephants get no number that `other` has given.
    #[must_use]
    pub fn numbered_after(mut self, other: &Self) -> Self {
        self.next = self.next.max(other.next);
        self
    }

    /// Returns the rules in force, in the order of the elephants' numbers.
    pub fn in_force(&self) -> Vec<InForce> {
        let rule = |entry: &Entry| match &entry.state {
            State::Ruled(rule) => Some(InForce {
                id: RuleId(entry.number),
                pattern: entry.pattern.clone(),
                exempt: rule.exempt.clone(),
                rule: rule.limits.rule(),
                bytes: rule.limits.bytes,
            }),
            State::Proposed | State::Rejected { .. } => None,
        };
        self.entries.iter().filter_map(rule).collect()
    }

    /// Ends the decisions whose end has passed, and forgets old elephants. Returns the notes for
    /// the audit log. `gauge` returns how the site performed between two times, which is the result
    /// of a trial.
    pub fn tick(
        &mut self,
        now: Timestamp,
        mut gauge: impl FnMut(&Entry, Timestamp, Timestamp) -> Gauge,
    ) -> Vec<Note> {
        let mut notes = Vec::new();
        for at in 0..self.entries.len() {
            let until = match &self.entries[at].state {
                State::Ruled(rule) => rule.until,
                State::Rejected { until, .. } => Some(*until),
                State::Proposed => None,
            };
            if until.is_none_or(|until| now < until) {
                continue;
            }
            let during = match &self.entries[at].state {
                State::Ruled(rule) if rule.origin == Origin::Trial => {
                    Some(gauge(&self.entries[at], rule.since, now))
                }
                State::Ruled(_) | State::Rejected { .. } | State::Proposed => None,
            };
            let entry = &mut self.entries[at];
            if let (Some(trial), Some(during)) = (&mut entry.trial, during) {
                trial.during = Some(during);
            }
            self.change(now, at, State::Proposed);
            notes.push(self.note(now, at, What::Ended, BYWASH, "its time is over"));
        }
        let kept = |entry: &Entry| {
            if entry.asked && entry.trial.is_none() { ASKED_RETENTION } else { RETENTION }
        };
        let is_kept = |entry: &Entry| !entry.is_open(now) || now < after(entry.seen, kept(entry));
        self.entries.retain(is_kept);
        notes
    }

    fn rule(
        &mut self,
        now: Timestamp,
        at: usize,
        limits: RuleLimits,
        origin: Origin,
        meta: DecisionMeta,
    ) -> Note {
        let until = Some(after(now, meta.lasts));
        let what = if origin == Origin::Trial { What::Tried } else { What::Approved };
        self.decided = true;
        let DecisionMeta { by, why, .. } = meta;
        let note = Note { until, limits: Some(limits), ..self.note(now, at, what, &by, &why) };
        let exempt = match &mut self.entries[at].state {
            State::Ruled(rule) => std::mem::take(&mut rule.exempt),
            State::Proposed | State::Rejected { .. } => Vec::new(),
        };
        self.change(
            now,
            at,
            State::Ruled(Rule { limits, exempt, origin, by, why, since: now, until, before: None }),
        );
        note
    }

    /// Changes the state of the elephant at index `at`. All changes of state use this function.
    fn change(&mut self, now: Timestamp, at: usize, state: State) {
        let entry = &mut self.entries[at];
        if let State::Ruled(rule) = std::mem::replace(&mut entry.state, state) {
            let before = rule.before.map(|before| *before);
            entry.ended = Some(Box::new(Ended { at: now, before }));
        }
        if entry.asked {
            entry.seen = now;
        }
        entry.revision = next_revision(entry.revision, now);
    }

    fn note(&self, at: Timestamp, place: usize, what: What, by: &str, why: &str) -> Note {
        let Entry { number, pattern, .. } = &self.entries[place];
        Note {
            at,
            subject: Subject::Elephant { number: *number, pattern: pattern.clone() },
            what,
            by: by.to_owned(),
            why: why.to_owned(),
            limits: None,
            until: None,
            unwritten: None,
            fleet: None,
        }
    }

    fn at(&self, number: u32) -> Result<usize, Refused> {
        let at = self.entries.iter().position(|entry| entry.number == number);
        at.ok_or(Refused::Unknown(number))
    }

    fn not_in_file(&self, at: usize) -> Result<(), Refused> {
        match &self.entries[at].state {
            State::Ruled(rule) if rule.origin == Origin::File => Err(Refused::InFile),
            State::Ruled(_) | State::Rejected { .. } | State::Proposed => Ok(()),
        }
    }

    fn is_full(&self) -> bool {
        self.in_force().len() >= MOST_RULES
    }
}
