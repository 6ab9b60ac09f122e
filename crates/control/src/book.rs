//! All elephants, and the only place where anything about them changes: by what was `found`, by operators' `words`, by the
//! `file`, and by time (here).

mod exempt;
mod export;
mod file;
mod found;
mod refused;
mod words;

use bywash_engine::throttle::{self, RuleId};
use bywash_units::Span;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::effect::Gauge;
use crate::entry::{Ended, Entry, Origin, Rule, State, began_by};
use crate::grants::Grants;
use crate::note::{Note, Subject, What};
use crate::text::next_revision;
use crate::word::Word;

pub use file::Written;
pub use found::Act;
pub use refused::Refused;

/// Rules that can hold at once: each request is held against all of them.
pub const MOST_RULES: usize = 64;
/// Elephants that are remembered.
pub const MOST_ENTRIES: usize = 256;

/// An elephant that nothing is decided of is forgotten so long after it was last found.
const FORGOTTEN: Span = Span::from_secs(7 * 86_400);
/// And what an operator has asked for and not tried, so long after that.
const ASKED: Span = Span::from_secs(3600);

/// Why what was kept cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("this is no book of elephants: {0}")]
pub struct BookError(#[from] serde_json::Error);

/// A rule as it is carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// The elephant's number.
    pub id: RuleId,
    /// Which requests.
    pub pattern: String,
    /// And which of these not.
    pub exempt: Vec<String>,
    /// How they wait.
    pub rule: throttle::Rule,
    /// Bytes a second of their answers, if these are held back.
    pub bytes: Option<u64>,
}

/// The version of the document that [`Book::text`] writes.
const VERSION: u32 = 1;

/// See the module. Fields of a later version are ignored when it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Book {
    /// The version of the program's document that wrote it. For people; 0 if it was written before there were versions.
    #[serde(default)]
    version: u32,
    entries: Vec<Entry>,
    /// The number given last.
    next: u32,
    /// Somebody has decided something once, or `auto` has, be it undone or over by now.
    #[serde(default)]
    decided: bool,
}

impl Book {
    /// What [`Book::text`] gave once. What has ended since, [`Book::tick`] says.
    ///
    /// # Errors
    /// If it did not.
    pub fn read(text: &str) -> Result<Self, BookError> {
        let mut book: Self = serde_json::from_str(text)?;
        book.version = 0;
        book.entries.truncate(MOST_ENTRIES);
        // A file may have been written by hand: what could not have been decided does not hold.
        for entry in &mut book.entries {
            if matches!(&entry.state, State::Ruled(rule) if rule.grants.wrong().is_some()) {
                entry.state = State::Proposed;
            }
        }
        let last = book.entries.iter().map(|entry| entry.number).max().unwrap_or(0);
        book.next = book.next.max(last);
        book.decided |= book.entries.iter().any(Entry::was_decided);
        Ok(book)
    }

    /// All of it, to be kept.
    ///
    /// # Panics
    /// Never.
    pub fn text(&self) -> String {
        let written = Self { version: VERSION, ..self.clone() };
        serde_json::to_string_pretty(&written).expect("a book is made of numbers and texts")
    }

    /// What was decided while the clock was wrong holds for as long as was said, and no longer; what was undone then is left
    /// alone for no longer than can be said.
    pub fn began_by(&mut self, now: Timestamp) {
        for entry in &mut self.entries {
            (entry.since, entry.seen) = (entry.since.min(now), entry.seen.min(now));
            if let Some(ended) = &mut entry.ended {
                ended.at = ended.at.min(now);
            }
            if let Some(until) = &mut entry.left_alone {
                *until = (*until).min(after(now, Word::LASTS.1));
            }
            match &mut entry.state {
                State::Ruled(Rule { since, until: Some(until), .. }) => {
                    (*since, *until) = began_by(now, *since, *until);
                }
                State::Rejected { word, until } => *until = (*until).min(after(now, word.lasts)),
                State::Ruled(_) | State::Proposed => {}
            }
        }
    }

    /// All elephants, by number.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// One elephant.
    ///
    /// # Errors
    /// If there is none of that number.
    pub fn entry(&self, number: u32) -> Result<&Entry, Refused> {
        self.entries.iter().find(|entry| entry.number == number).ok_or(Refused::Unknown(number))
    }

    /// Whether somebody has decided something once, or `auto` has, be it undone or over by now. What stands in the file is
    /// nobody's decision.
    pub const fn was_decided(&self) -> bool {
        self.decided
    }

    /// What is found from now on gets no number that the other one has given.
    #[must_use]
    pub fn numbered_after(mut self, other: &Self) -> Self {
        self.next = self.next.max(other.next);
        self
    }

    /// Rules that hold.
    pub fn in_force(&self) -> Vec<InForce> {
        let rule = |entry: &Entry| match &entry.state {
            State::Ruled(rule) => Some(InForce {
                id: RuleId(entry.number),
                pattern: entry.pattern.clone(),
                exempt: rule.exempt.clone(),
                rule: rule.grants.rule(),
                bytes: rule.grants.bytes,
            }),
            State::Proposed | State::Rejected { .. } => None,
        };
        self.entries.iter().filter_map(rule).collect()
    }

    /// Ends what has come to its end. `gauge` tells how the site was between two moments, for trials.
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
            notes.push(self.note(now, at, What::Ended, "bywash", "its time is over"));
        }
        let kept = |entry: &Entry| {
            if entry.asked && entry.trial.is_none() { ASKED } else { FORGOTTEN }
        };
        let is_kept = |entry: &Entry| !entry.is_open(now) || now < after(entry.seen, kept(entry));
        self.entries.retain(is_kept);
        notes
    }

    fn rule(
        &mut self,
        now: Timestamp,
        at: usize,
        grants: Grants,
        origin: Origin,
        word: Word,
    ) -> Note {
        let until = Some(after(now, word.lasts));
        let what = if origin == Origin::Trial { What::Tried } else { What::Approved };
        self.decided = true;
        let Word { by, why, .. } = word;
        let note = Note { until, grants: Some(grants), ..self.note(now, at, what, &by, &why) };
        let exempt = match &mut self.entries[at].state {
            State::Ruled(rule) => std::mem::take(&mut rule.exempt),
            State::Proposed | State::Rejected { .. } => Vec::new(),
        };
        self.change(
            now,
            at,
            State::Ruled(Rule { grants, exempt, origin, by, why, since: now, until, before: None }),
        );
        note
    }

    /// The only way to another state.
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
            grants: None,
            until: None,
            unwritten: None,
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

/// So long after this; the end of time if there is none.
pub(crate) fn after(at: Timestamp, span: Span) -> Timestamp {
    let span = jiff::SignedDuration::try_from(span.to_std()).unwrap_or(jiff::SignedDuration::MAX);
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}
