//! Overrides: settings that replace those of the configuration file for a limited time. They are
//! the mode of a class, the level of a population of clients, and the bypass of the whole gateway.
//!
//! Like a decision about an elephant, each override has an author, a reason and an end. A class has
//! at most one: a new decision replaces it. A change may name the [`Overrides::revision`] that its
//! author has seen. If the revision has changed, another decision came first, and the change is
//! rejected. No revision is given twice, so a revision from an earlier process never matches a
//! different state.

mod export;

use bywash_terminal::text::excerpt;
use bywash_units::TimeSpan;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision_meta::{DecisionMeta, DecisionMetaError};
use crate::mode::Mode;
use crate::note::{BYWASH, Note, Subject, What};
use crate::text::next_revision;
use crate::time::{after, began_by};

/// The maximum number of populations whose level is overridden.
const MOST_POPULATIONS: usize = 64;
/// The maximum number of overrides in force: one for each class, the bypass, and the populations.
pub const MOST_OVERRIDES: usize = 65 + MOST_POPULATIONS;
/// The worst level of a population.
const WORST_LEVEL: u8 = 7;

/// The setting that an override replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The mode of a class.
    Class {
        /// The class's name.
        class: String,
        /// The mode of the class while the override holds.
        mode: Mode,
        /// The percentage of clients that the mode applies to. For all other clients, requests are
        /// only observed.
        enforce_percent: u8,
    },
    /// The level of a population of clients, by which their first requests rank.
    Population {
        /// The population's name: sixteen hexadecimal digits.
        population: String,
        /// The level: 0 is the best, 7 the worst.
        level: u8,
    },
    /// The bypass: the gateway takes no decisions.
    Bypass,
}

/// A setting that replaces that of the configuration file for a limited time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Override {
    /// The number that identifies the override to operators. No number is given twice.
    pub number: u32,
    /// The setting that the override replaces.
    pub target: Target,
    /// The author of the decision.
    pub by: String,
    /// The reason for the decision.
    pub why: String,
    /// When the override began.
    pub since: Timestamp,
    /// When the override ends.
    pub until: Timestamp,
}

/// Why a decision was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOverridden {
    /// No override has this number.
    #[error("there is no override {0}: `bywash policy` lists them all")]
    Unknown(u32),
    /// No class has this name.
    #[error("there is no class `{}`: `bywash policy` lists them all", excerpt(.0, 40))]
    NoClass(String),
    /// The percentage is not in the range from 1 to 100.
    #[error("the percentage of clients must be from 1 to 100")]
    EnforcePercent,
    /// A percentage was given together with mode `observe`, in which all clients are observed.
    #[error(
        "only mode enforce takes a percentage: in mode observe, a class is observed for all clients"
    )]
    Observed,
    /// The name of the population or its level is invalid.
    #[error(
        "a population has a name of 16 hexadecimal digits, as `bywash populations` shows it, and a \
         level from 0 to {WORST_LEVEL}"
    )]
    Population,
    /// The levels of too many populations are overridden.
    #[error("the levels of {MOST_POPULATIONS} populations are overridden already: end one of them")]
    TooManyPopulations,
    /// The author, the reason or the duration is invalid.
    #[error(transparent)]
    DecisionMeta(#[from] DecisionMetaError),
    /// The revision has changed: another decision came first.
    #[error(
        "another operator has decided meanwhile (revision {is}, you have seen {seen}): look again"
    )]
    Conflict {
        /// The current revision of the overrides.
        is: u64,
        /// The revision that the operator has seen.
        seen: u64,
    },
}

/// Why stored overrides cannot be read: the text is not such a document.
#[derive(Debug, thiserror::Error)]
#[error("the document is not one of overrides: {0}")]
pub struct OverridesError(#[from] serde_json::Error);

/// The version of the document that [`Overrides::text`] writes.
const VERSION: u32 = 1;

/// The overrides in force. See the documentation of the module.
///
/// Unknown fields, from a later version, are ignored when the document is read. An older program
/// must keep an active bypass, not lose it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// The version of the document when it was written, for people. It is 0 for a document that was
    /// written before versions were introduced.
    #[serde(default)]
    version: u32,
    list: Vec<Override>,
    /// The last number that was given to an override.
    next: u32,
    revision: u64,
    /// Whether an operator ever took a decision, even if the decision was undone or has ended
    /// since.
    #[serde(default)]
    decided: bool,
}

impl Overrides {
    /// Reads a document that [`Overrides::text`] returned earlier. The document may contain
    /// overrides that have ended since; the next [`Overrides::tick`] ends them. Overrides with an
    /// invalid value, and those beyond [`MOST_OVERRIDES`], are dropped: only an edit by hand can
    /// have put them there.
    ///
    /// # Errors
    /// If the text is not such a document.
    pub fn read(text: &str) -> Result<Self, OverridesError> {
        let mut overrides: Self = serde_json::from_str(text)?;
        overrides.version = 0;
        // The stored file may have been edited by hand, so it may contain overrides that `set`
        // would reject.
        overrides.list.retain(|one| is_valid(&one.target));
        overrides.list.truncate(MOST_OVERRIDES);
        let last = overrides.list.iter().map(|one| one.number).max().unwrap_or(0);
        overrides.next = overrides.next.max(last);
        overrides.decided |= overrides.next > 0;
        Ok(overrides)
    }

    /// Returns the document to be stored, which [`Overrides::read`] reads.
    ///
    /// # Panics
    /// Never.
    pub fn text(&self) -> String {
        let written = Self { version: VERSION, ..self.clone() };
        serde_json::to_string_pretty(&written).expect("overrides are made of numbers and texts")
    }

    /// Returns the overrides in force, in the order of their numbers.
    pub fn list(&self) -> &[Override] {
        &self.list
    }

    /// Returns the current revision, which changes with every change of the overrides.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns whether an operator ever took a decision, even if the decision was undone or has
    /// ended since.
    pub const fn was_decided(&self) -> bool {
        self.decided
    }

    /// Returns when the present override of the setting `target` ends; `None` if there is none. All
    /// overrides of one class concern the same setting, whatever mode they set.
    pub fn end_of(&self, target: &Target) -> Option<Timestamp> {
        let same = self.list.iter().find(|one| about(&one.target) == about(target));
        same.map(|one| one.until)
    }

    /// Returns the override of a class, its mode and its percentage; `None` if there is none.
    pub fn of_class(&self, class: &str) -> Option<(&Override, Mode, u8)> {
        self.list.iter().find_map(|one| match &one.target {
            Target::Class { class: of, mode, enforce_percent } if of == class => {
                Some((one, *mode, *enforce_percent))
            }
            Target::Class { .. } | Target::Population { .. } | Target::Bypass => None,
        })
    }

    /// Returns the populations whose levels are overridden: the name of each as a number, the
    /// level, and the number of the override.
    pub fn populations(&self) -> impl Iterator<Item = (u64, u8, u32)> {
        self.list.iter().filter_map(|one| match &one.target {
            Target::Population { population, level } => {
                Some((u64::from_str_radix(population, 16).ok()?, *level, one.number))
            }
            Target::Class { .. } | Target::Bypass => None,
        })
    }

    /// Returns whether the gateway is bypassed.
    pub fn bypasses(&self) -> bool {
        self.bypass().is_some()
    }

    /// Returns the overrides of classes in the syntax of the configuration file.
    pub fn exported(&self) -> String {
        export::toml(&self.list)
    }

    /// Sets an override, which replaces an earlier one of the same setting, and returns the note
    /// for the audit log. `classes` are the names of all classes.
    ///
    /// # Errors
    /// If the override is not possible. Then nothing has changed.
    pub fn set(
        &mut self,
        now: Timestamp,
        target: Target,
        meta: DecisionMeta,
        seen: Option<u64>,
        classes: &[&str],
    ) -> Result<Note, NotOverridden> {
        self.is_seen(seen)?;
        let meta = meta.checked()?;
        is_possible(&target, classes)?;
        let is_same = |one: &Override| about(&one.target) == about(&target);
        let is_of_population = |one: &&Override| matches!(one.target, Target::Population { .. });
        let others = self.list.iter().filter(is_of_population).filter(|one| !is_same(one));
        let is_full = others.count() >= MOST_POPULATIONS;
        if is_full && matches!(target, Target::Population { .. }) {
            return Err(NotOverridden::TooManyPopulations);
        }
        self.list.retain(|one| !is_same(one));
        self.next += 1;
        self.decided = true;
        self.revision = next_revision(self.revision, now);
        let until = after(now, meta.lasts);
        let DecisionMeta { by, why, .. } = meta;
        let note = note(now, &target, What::Overridden, &by, &why, Some(until));
        self.list.push(Override { number: self.next, target, by, why, since: now, until });
        Ok(note)
    }

    /// Puts a decision in force that was made at another gateway of the fleet, and returns whether
    /// the overrides have changed. An override that has ended since is not put in force, but an
    /// earlier one of the same setting ends. A bypass that bypasses the gateway because its state
    /// could not be read ends only by a later decision, and is not shortened.
    ///
    /// # Errors
    /// If the override is not possible here, or its author, reason or duration is invalid. Then
    /// nothing has changed.
    pub fn follow(
        &mut self,
        now: Timestamp,
        decided: &Note,
        classes: &[&str],
    ) -> Result<bool, NotOverridden> {
        let Some(target) = target_of(&decided.subject) else { return Ok(false) };
        is_possible(&target, classes)?;
        decided.meta().checked()?;
        let holds = decided.holds(now);
        let present = self.list.iter().find(|one| about(&one.target) == about(&target));
        let is_own = present.is_some_and(|one| {
            let is_less = holds.map_or(decided.at < one.since, |(_, until)| until < one.until);
            one.by == BYWASH && is_less
        });
        if is_own || (present.is_none() && holds.is_none()) {
            return Ok(false);
        }
        self.list.retain(|one| about(&one.target) != about(&target));
        self.decided = true;
        self.revision = next_revision(self.revision, now);
        if let Some((since, until)) = holds {
            self.next += 1;
            let (by, why) = (decided.by.clone(), decided.why.clone());
            self.list.push(Override { number: self.next, target, by, why, since, until });
        }
        Ok(true)
    }

    /// Returns whether the decision `decided` holds at `now`, and no override of its setting is in
    /// force.
    pub fn lacks(&self, now: Timestamp, decided: &Note) -> bool {
        let Some(target) = target_of(&decided.subject) else { return false };
        decided.holds(now).is_some() && self.end_of(&target).is_none()
    }

    /// Ends an override: the setting of the configuration file is in force again. Returns the note
    /// for the audit log.
    ///
    /// # Errors
    /// If the override does not exist, the revision has changed, or the author or reason is
    /// invalid. Then nothing has changed.
    pub fn undo(
        &mut self,
        now: Timestamp,
        number: u32,
        by: &str,
        why: &str,
        seen: Option<u64>,
    ) -> Result<Note, NotOverridden> {
        self.is_seen(seen)?;
        let meta =
            DecisionMeta { by: by.into(), why: why.into(), lasts: TimeSpan::from_secs(3600) }
                .checked()?;
        let at = self.list.iter().position(|one| one.number == number);
        let at = at.ok_or(NotOverridden::Unknown(number))?;
        let ended = self.list.remove(at);
        self.revision = next_revision(self.revision, now);
        Ok(note(now, &ended.target, What::Undone, &meta.by, &meta.why, None))
    }

    /// Ends the bypass, and returns the note for the audit log. Returns no note if the gateway is
    /// not bypassed. `is_started_so` tells whether the process was started in bypass.
    ///
    /// # Errors
    /// If the revision has changed, or the author, reason or duration is invalid. Then nothing has
    /// changed.
    pub fn end_bypass(
        &mut self,
        now: Timestamp,
        meta: DecisionMeta,
        seen: Option<u64>,
        is_started_so: bool,
    ) -> Result<Option<Note>, NotOverridden> {
        self.is_seen(seen)?;
        let meta = meta.checked()?;
        if !self.bypasses() && !is_started_so {
            return Ok(None);
        }
        self.list.retain(|one| one.target != Target::Bypass);
        self.decided = true;
        self.revision = next_revision(self.revision, now);
        Ok(Some(note(now, &Target::Bypass, What::Undone, &meta.by, &meta.why, None)))
    }

    /// Corrects overrides that were set while the clock was ahead. Afterwards none ends later than
    /// its duration after `now`.
    pub fn began_by(&mut self, now: Timestamp) {
        for one in &mut self.list {
            (one.since, one.until) = began_by(now, one.since, one.until);
        }
    }

    /// Returns the number of the override that bypasses the gateway; `None` if it is not bypassed.
    pub fn bypass(&self) -> Option<u32> {
        self.list.iter().find(|one| one.target == Target::Bypass).map(|one| one.number)
    }

    /// Ends the overrides whose end has passed, and returns their notes for the audit log.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Note> {
        self.end(now, "its time is over", |one| one.until <= now)
    }

    /// Ends the overrides of classes that are no longer in the configuration, and returns their
    /// notes for the audit log. Call this function after each reload. The revision changes even if
    /// no override ends.
    pub fn configured(&mut self, now: Timestamp, classes: &[&str]) -> Vec<Note> {
        // A revision that was seen before the reload must not match the state after it.
        self.revision = next_revision(self.revision, now);
        self.end(now, "the class is no longer in the configuration file", |one| match &one.target {
            Target::Class { class, .. } => !classes.contains(&class.as_str()),
            Target::Population { .. } | Target::Bypass => false,
        })
    }

    fn end(&mut self, now: Timestamp, why: &str, ends: impl Fn(&Override) -> bool) -> Vec<Note> {
        let ended: Vec<Override> = self.list.extract_if(.., |one| ends(one)).collect();
        if !ended.is_empty() {
            self.revision = next_revision(self.revision, now);
        }
        ended.iter().map(|one| note(now, &one.target, What::Ended, BYWASH, why, None)).collect()
    }

    const fn is_seen(&self, seen: Option<u64>) -> Result<(), NotOverridden> {
        match seen {
            Some(seen) if seen != self.revision => {
                Err(NotOverridden::Conflict { is: self.revision, seen })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Returns the setting that a decision is about; `None` if it is about something else.
fn target_of(subject: &Subject) -> Option<Target> {
    match subject {
        Subject::Class { class, mode, enforce_percent } => Some(Target::Class {
            class: class.clone(),
            mode: *mode,
            enforce_percent: *enforce_percent,
        }),
        Subject::Bypass => Some(Target::Bypass),
        // The name of a population means nothing at another gateway.
        Subject::Population { .. } | Subject::Elephant { .. } | Subject::File => None,
    }
}

/// Returns the setting that an override replaces: its kind, and the name of the class or population.
fn about(target: &Target) -> (&str, &str) {
    match target {
        Target::Class { class, .. } => ("class", class),
        Target::Population { population, .. } => ("population", population),
        Target::Bypass => ("bypass", ""),
    }
}

/// Checks that there can be an override of `target`. `classes` are the names of all classes.
fn is_possible(target: &Target, classes: &[&str]) -> Result<(), NotOverridden> {
    let Target::Class { class, mode, enforce_percent } = target else {
        return if is_valid(target) { Ok(()) } else { Err(NotOverridden::Population) };
    };
    if !is_valid(target) {
        Err(NotOverridden::EnforcePercent)
    } else if *mode == Mode::Observe && *enforce_percent < 100 {
        Err(NotOverridden::Observed)
    } else if !classes.contains(&class.as_str()) {
        Err(NotOverridden::NoClass(class.clone()))
    } else {
        Ok(())
    }
}

/// Returns whether the percentage or the population of an override is valid.
fn is_valid(target: &Target) -> bool {
    match target {
        Target::Class { enforce_percent, .. } => (1..=100).contains(enforce_percent),
        Target::Population { population, level } => {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            population.len() == 16 && population.bytes().all(is_digit) && *level <= WORST_LEVEL
        }
        Target::Bypass => true,
    }
}

fn note(
    at: Timestamp,
    target: &Target,
    what: What,
    by: &str,
    why: &str,
    until: Option<Timestamp>,
) -> Note {
    let subject = match target {
        Target::Class { class, mode, enforce_percent } => {
            Subject::Class { class: class.clone(), mode: *mode, enforce_percent: *enforce_percent }
        }
        Target::Population { population, level } => {
            Subject::Population { population: population.clone(), level: *level }
        }
        Target::Bypass => Subject::Bypass,
    };
    let (by, why) = (by.to_owned(), why.to_owned());
    Note { at, subject, what, by, why, limits: None, until, unwritten: None, fleet: None }
}
