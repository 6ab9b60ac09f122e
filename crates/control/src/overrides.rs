//! What holds for a while instead of what the file says: how a class is treated, and that nothing is decided at all.
//!
//! As with elephants, each has an author, a reason and an end. A class has one at most: who decides again replaces it. What
//! changes anything may say which [`Overrides::revision`] it has seen; if that is another by now, somebody else has decided
//! meanwhile, and nothing is done. Revisions are never given twice, so that one of a process before this one is no
//! other's.

mod export;

use bywash_units::Span;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::book::after;
use crate::entry::began_by;
use crate::note::{Note, Subject, What};
use crate::text::{escaped, next_revision};
use crate::word::{Word, WordError};

/// Overrides that can hold at once: one of each class, and one of all.
pub const MOST_OVERRIDES: usize = 65;

/// How requests of a class are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What is decided is recorded and not done.
    Observe,
    /// It is done.
    Enforce,
}

impl Mode {
    /// The word for it, as it stands in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

/// What is to be otherwise than the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// How the requests of a class are treated.
    Class {
        /// Which.
        class: String,
        /// How.
        mode: Mode,
        /// Of so many of a hundred visitors; the others are only observed.
        percent: u8,
    },
    /// Nothing is decided.
    Bypass,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Override {
    /// What operators call it by. Given once.
    pub number: u32,
    /// What it is about.
    pub target: Target,
    /// Who has decided it.
    pub by: String,
    /// Why.
    pub why: String,
    /// Since when it holds.
    pub since: Timestamp,
    /// When it ends.
    pub until: Timestamp,
}

/// Why a decision was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOverridden {
    /// There is none of that number.
    #[error("there is no override {0}: `bywash policy` has them all")]
    Unknown(u32),
    /// There is no such class.
    #[error("there is no class `{}`: `bywash policy` has them all", shown(.0))]
    NoClass(String),
    /// Of nobody, or of more than all.
    #[error("of 1 to 100 visitors in a hundred")]
    Percent,
    /// A part of those of whom none is.
    #[error(
        "a part of all visitors can be enforced: where a class only observes, all are observed"
    )]
    Observed,
    /// The word does not count.
    #[error(transparent)]
    Word(#[from] WordError),
    /// Somebody else has decided meanwhile.
    #[error(
        "somebody else has decided meanwhile (revision {is}, you have seen {seen}): look again"
    )]
    Conflict {
        /// The one that there is.
        is: u64,
        /// The one that was seen.
        seen: u64,
    },
}

/// Returns the beginning of a text, escaped.
fn shown(text: &str) -> String {
    escaped(&text.chars().take(40).collect::<String>())
}

/// Why what was kept cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("these are no overrides: {0}")]
pub struct OverridesError(#[from] serde_json::Error);

/// The version of the document that [`Overrides::text`] writes.
const VERSION: u32 = 1;

/// See the module.
///
/// Fields of a later version are ignored when it is read: an older program must keep an active bypass, not lose it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// The version of the program's document that wrote it. For people; 0 if it was written before there were versions.
    #[serde(default)]
    version: u32,
    list: Vec<Override>,
    /// The number given last.
    next: u32,
    revision: u64,
    /// Somebody has decided something once, be it undone or over by now.
    #[serde(default)]
    decided: bool,
}

impl Overrides {
    /// What [`Overrides::text`] gave once. What has ended since, [`Overrides::tick`] says.
    ///
    /// # Errors
    /// If it did not.
    pub fn read(text: &str) -> Result<Self, OverridesError> {
        let mut overrides: Self = serde_json::from_str(text)?;
        overrides.version = 0;
        // A file may have been written by hand: what could not have been decided does not hold.
        overrides.list.retain(|one| is_percent(&one.target));
        overrides.list.truncate(MOST_OVERRIDES);
        let last = overrides.list.iter().map(|one| one.number).max().unwrap_or(0);
        overrides.next = overrides.next.max(last);
        overrides.decided |= overrides.next > 0;
        Ok(overrides)
    }

    /// All of it, to be kept.
    ///
    /// # Panics
    /// Never.
    pub fn text(&self) -> String {
        let written = Self { version: VERSION, ..self.clone() };
        serde_json::to_string_pretty(&written).expect("overrides are made of numbers and texts")
    }

    /// All that hold, by number.
    pub fn list(&self) -> &[Override] {
        &self.list
    }

    /// Another one whenever something has changed.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether somebody has decided something once, be it undone or over by now.
    pub const fn was_decided(&self) -> bool {
        self.decided
    }

    /// Returns when the override of the same target ends, if there is one.
    pub fn end_of(&self, target: &Target) -> Option<Timestamp> {
        let same = self.list.iter().find(|one| about(&one.target) == about(target));
        same.map(|one| one.until)
    }

    /// How a class is treated instead of what the file says.
    pub fn of_class(&self, class: &str) -> Option<(&Override, Mode, u8)> {
        self.list.iter().find_map(|one| match &one.target {
            Target::Class { class: of, mode, percent } if of == class => {
                Some((one, *mode, *percent))
            }
            Target::Class { .. } | Target::Bypass => None,
        })
    }

    /// Whether nothing is decided.
    pub fn bypasses(&self) -> bool {
        self.bypass().is_some()
    }

    /// Lines of the configuration file that say the same of classes.
    pub fn exported(&self) -> String {
        export::toml(&self.list)
    }

    /// Something holds from now on instead of what the file says. `classes` are those that there are.
    ///
    /// # Errors
    /// If it cannot; then nothing has changed.
    pub fn set(
        &mut self,
        now: Timestamp,
        target: Target,
        word: Word,
        seen: Option<u64>,
        classes: &[&str],
    ) -> Result<Note, NotOverridden> {
        self.is_seen(seen)?;
        let word = word.checked()?;
        if !is_percent(&target) {
            return Err(NotOverridden::Percent);
        }
        if let Target::Class { mode: Mode::Observe, percent: ..100, .. } = &target {
            return Err(NotOverridden::Observed);
        }
        if let Target::Class { class, .. } = &target
            && !classes.contains(&class.as_str())
        {
            return Err(NotOverridden::NoClass(class.clone()));
        }
        let is_same = |one: &Override| about(&one.target) == about(&target);
        self.list.retain(|one| !is_same(one));
        self.next += 1;
        self.decided = true;
        self.revision = next_revision(self.revision, now);
        let until = after(now, word.lasts);
        let Word { by, why, .. } = word;
        let note = note(now, &target, What::Overridden, &by, &why, Some(until));
        self.list.push(Override { number: self.next, target, by, why, since: now, until });
        Ok(note)
    }

    /// What the file says holds again.
    ///
    /// # Errors
    /// If it cannot; then nothing has changed.
    pub fn undo(
        &mut self,
        now: Timestamp,
        number: u32,
        by: &str,
        why: &str,
        seen: Option<u64>,
    ) -> Result<Note, NotOverridden> {
        self.is_seen(seen)?;
        let word =
            Word { by: by.into(), why: why.into(), lasts: Span::from_secs(3600) }.checked()?;
        let at = self.list.iter().position(|one| one.number == number);
        let at = at.ok_or(NotOverridden::Unknown(number))?;
        let ended = self.list.remove(at);
        self.revision = next_revision(self.revision, now);
        Ok(note(now, &ended.target, What::Undone, &word.by, &word.why, None))
    }

    /// Decisions are taken again. `is_started_so`: whoever has started the process wanted none. Nothing to say if they are
    /// taken already.
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed.
    pub fn end_bypass(
        &mut self,
        now: Timestamp,
        word: Word,
        seen: Option<u64>,
        is_started_so: bool,
    ) -> Result<Option<Note>, NotOverridden> {
        self.is_seen(seen)?;
        let word = word.checked()?;
        if !self.bypasses() && !is_started_so {
            return Ok(None);
        }
        self.list.retain(|one| one.target != Target::Bypass);
        self.decided = true;
        self.revision = next_revision(self.revision, now);
        Ok(Some(note(now, &Target::Bypass, What::Undone, &word.by, &word.why, None)))
    }

    /// What was decided while the clock was wrong holds for as long as was said, and no longer.
    pub fn began_by(&mut self, now: Timestamp) {
        for one in &mut self.list {
            (one.since, one.until) = began_by(now, one.since, one.until);
        }
    }

    /// The number of the one by which nothing is decided.
    pub fn bypass(&self) -> Option<u32> {
        self.list.iter().find(|one| one.target == Target::Bypass).map(|one| one.number)
    }

    /// Ends what has come to its end.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Note> {
        self.end(now, "its time is over", |one| one.until <= now)
    }

    /// There are these classes and no others: what was said of another one ends.
    pub fn configured(&mut self, now: Timestamp, classes: &[&str]) -> Vec<Note> {
        // Who has seen what was before has not seen this.
        self.revision = next_revision(self.revision, now);
        self.end(now, "the class is gone from the file", |one| match &one.target {
            Target::Class { class, .. } => !classes.contains(&class.as_str()),
            Target::Bypass => false,
        })
    }

    fn end(&mut self, now: Timestamp, why: &str, ends: impl Fn(&Override) -> bool) -> Vec<Note> {
        let ended: Vec<Override> = self.list.extract_if(.., |one| ends(one)).collect();
        if !ended.is_empty() {
            self.revision = next_revision(self.revision, now);
        }
        ended.iter().map(|one| note(now, &one.target, What::Ended, "bywash", why, None)).collect()
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

fn about(target: &Target) -> Option<&str> {
    match target {
        Target::Class { class, .. } => Some(class),
        Target::Bypass => None,
    }
}

fn is_percent(target: &Target) -> bool {
    match target {
        Target::Class { percent, .. } => (1..=100).contains(percent),
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
        Target::Class { class, mode, percent } => {
            Subject::Class { class: class.clone(), mode: *mode, percent: *percent }
        }
        Target::Bypass => Subject::Bypass,
    };
    let (by, why) = (by.to_owned(), why.to_owned());
    Note { at, subject, what, by, why, grants: None, until, unwritten: None }
}
