//! All elephants, and the only place where anything about them changes.

mod exempt;
mod export;
mod file;

use std::collections::HashSet;

use bywash_engine::throttle::{self, RuleId};
use bywash_units::Span;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::effect::{Effect, Gauge};
use crate::elephant::{Elephant, Resource};
use crate::entry::{Ended, Entry, Origin, Rule, State, Trial, began_by};
use crate::grants::{Change, Grants};
use crate::note::{Note, Subject, What};
use crate::text::next_revision;
use crate::word::{Word, WordError};

pub use file::Written;

/// Rules that can hold at once: each request is held against all of them.
pub const MOST_RULES: usize = 64;
/// Elephants that are remembered.
pub const MOST_ENTRIES: usize = 256;

/// Of a resource's capacity, what an elephant uses at least that is held back without asking.
const MUCH: f64 = 0.2;
/// Above this part of one client's an elephant may be that client's work, or its wish: an operator is asked.
const MUCH_BY_ONE: f64 = 0.3;
/// For how long what nobody has asked for holds.
const AUTO: Span = Span::from_secs(3600);
/// An elephant that nothing is decided of is forgotten so long after it was last found.
const FORGOTTEN: Span = Span::from_secs(7 * 86_400);
/// What was found is found again so soon, or it is over.
const LATELY: Span = Span::from_secs(60);
/// And what an operator has asked for, so long after that.
const ASKED: Span = Span::from_secs(3600);

/// What is done about what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// It is proposed.
    #[default]
    Propose,
    /// Whatever is sure and fills processors is held back for an hour; what is not is proposed.
    Auto,
}

/// Why a decision was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no elephant of that number.
    #[error("there is no elephant {0}: `bywash elephants list` has them all")]
    Unknown(u32),
    /// The word does not count.
    #[error(transparent)]
    Word(#[from] WordError),
    /// Some of its requests are transactions.
    #[error("some of these requests are transactions: what earns is not held back")]
    Transacts,
    /// The grants make no sense.
    #[error("{0}")]
    Grants(&'static str),
    /// A trial is short.
    #[error("a trial takes 10s to 10m: approve the rule if it is to hold for longer")]
    Trial,
    /// There are too many rules.
    #[error("{MOST_RULES} rules hold already: undo one first")]
    Many,
    /// The file says so, and only the file can say otherwise.
    #[error("this rule stands in the file: change it there, and reload")]
    InFile,
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
    /// There are too many decisions.
    #[error("{MOST_ENTRIES} elephants are remembered, and something holds of each: undo one first")]
    Full,
    /// Nothing was decided that could be undone.
    #[error("nothing holds of elephant {0} that could be undone")]
    Nothing(u32),
}

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

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Book {
    entries: Vec<Entry>,
    /// The number given last.
    next: u32,
}

impl Book {
    /// What [`Book::text`] gave once. What has ended since, [`Book::tick`] says.
    ///
    /// # Errors
    /// If it did not.
    pub fn read(text: &str) -> Result<Self, BookError> {
        let mut book: Self = serde_json::from_str(text)?;
        book.entries.truncate(MOST_ENTRIES);
        // A file may have been written by hand: what could not have been decided does not hold.
        for entry in &mut book.entries {
            if matches!(&entry.state, State::Ruled(rule) if rule.grants.wrong().is_some()) {
                entry.state = State::Proposed;
            }
        }
        let last = book.entries.iter().map(|entry| entry.number).max().unwrap_or(0);
        book.next = book.next.max(last);
        Ok(book)
    }

    /// All of it, to be kept.
    ///
    /// # Panics
    /// Never.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a book is made of numbers and texts")
    }

    /// What was decided while the clock was wrong holds for as long as was said, and no longer.
    pub fn began_by(&mut self, now: Timestamp) {
        for entry in &mut self.entries {
            (entry.since, entry.seen) = (entry.since.min(now), entry.seen.min(now));
            if let Some(ended) = &mut entry.ended {
                ended.at = ended.at.min(now);
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

    /// Whether anybody has decided anything that still holds.
    pub fn is_decided(&self) -> bool {
        self.entries.iter().any(|entry| entry.state != State::Proposed)
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

    /// These were found, and no others. Says what is sure now and was not. What was provisional and is not found again
    /// was nothing.
    pub fn found(&mut self, now: Timestamp, elephants: Vec<Elephant>, act: Act) -> Vec<Note> {
        let mut notes = Vec::new();
        for elephant in one_of_each(self.as_ruled(elephants)) {
            let Some(at) = self.place_of(now, &elephant.pattern) else { continue };
            let entry = &mut self.entries[at];
            let is_sure = !elephant.provisional;
            entry.found = Some(elephant);
            entry.seen = now;
            // What is not sure may be nothing, and was asked for all the same.
            entry.asked &= !is_sure;
            if is_sure && !std::mem::replace(&mut entry.told, true) {
                notes.push(self.note(
                    now,
                    at,
                    What::Proposed,
                    "bywash",
                    "it was found to use much",
                ));
            }
            notes.extend(self.act(now, at, act));
        }
        self.entries.retain(|entry| {
            let is_provisional = entry.found.as_ref().is_some_and(|found| found.provisional);
            entry.seen == now || entry.state != State::Proposed || entry.asked || !is_provisional
        });
        notes
    }

    /// What somebody has ruled is found for the resource that the rule is for, or not at all: it is measured by that.
    fn as_ruled(&self, mut elephants: Vec<Elephant>) -> Vec<Elephant> {
        elephants.retain(|elephant| {
            let of = self.entries.iter().find(|entry| entry.pattern == elephant.pattern);
            let is_ruled = |entry: &&Entry| matches!(&entry.state, State::Ruled(rule) if rule.origin != Origin::File);
            let ruled = of.filter(is_ruled);
            let found = ruled.and_then(|entry| entry.found.as_ref());
            found.is_none_or(|found| found.resource == elephant.resource)
        });
        elephants
    }

    /// An operator asks for these requests by name, be it much or little that they use: what a rule would do is shown, and one
    /// can be approved. Says under which number; nothing is decided of one that there is.
    ///
    /// # Errors
    /// If there is no rule for such requests, or no place.
    pub fn ask(
        &mut self,
        now: Timestamp,
        found: Elephant,
        word: Word,
    ) -> Result<(u32, Option<Note>), Refused> {
        let word = word.checked()?;
        if found.transacts {
            return Err(Refused::Transacts);
        }
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.pattern == found.pattern) {
            // What was found long ago says nothing of now.
            let is_over = entry.state == State::Proposed && now >= after(entry.seen, LATELY);
            if is_over {
                (entry.found, entry.asked) = (Some(found), true);
            }
            if entry.asked {
                entry.seen = now;
            }
            return Ok((entry.number, None));
        }
        let at = self.place_of(now, &found.pattern).ok_or(Refused::Full)?;
        let entry = &mut self.entries[at];
        entry.found = Some(found);
        (entry.told, entry.asked) = (true, true);
        let number = entry.number;
        Ok((number, Some(self.note(now, at, What::Asked, &word.by, &word.why))))
    }

    /// Those that operators have asked for, to be told what they use by now.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| entry.asked).map(|entry| entry.pattern.as_str())
    }

    /// What those use by now.
    pub fn uses(&mut self, elephants: Vec<Elephant>) {
        for elephant in elephants {
            let is = |entry: &&mut Entry| entry.asked && entry.pattern == elephant.pattern;
            if let Some(entry) = self.entries.iter_mut().find(is) {
                entry.found = Some(elephant);
            }
        }
    }

    /// Where the elephant of this pattern stands; nowhere if the book is full of decisions.
    fn place_of(&mut self, now: Timestamp, pattern: &str) -> Option<usize> {
        if let Some(at) = self.entries.iter().position(|entry| entry.pattern == pattern) {
            return Some(at);
        }
        if self.entries.len() == MOST_ENTRIES {
            let open = self.entries.iter().enumerate().filter(|(_, e)| e.state == State::Proposed);
            let (oldest, _) = open.min_by_key(|(_, entry)| entry.seen)?;
            self.entries.remove(oldest);
        }
        self.next += 1;
        self.entries.push(Entry {
            number: self.next,
            pattern: pattern.to_owned(),
            found: None,
            since: now,
            seen: now,
            told: false,
            asked: false,
            state: State::Proposed,
            trial: None,
            left_alone: None,
            ended: None,
            revision: 0,
        });
        Some(self.entries.len() - 1)
    }

    /// Holds one back that is sure, if the file says so and nobody has decided.
    fn act(&mut self, now: Timestamp, at: usize, act: Act) -> Option<Note> {
        let entry = &self.entries[at];
        let found = entry.found.as_ref()?;
        let is_one = found.twins.is_empty() && !found.transacts;
        let is_sure =
            !found.provisional && found.by_one <= MUCH_BY_ONE && found.is_plausible() && is_one;
        let is_much = found.consists_of == Resource::Processors && found.of_capacity() >= MUCH;
        if act == Act::Propose
            || !is_sure
            || !is_much
            || entry.state != State::Proposed
            || entry.left_alone.is_some_and(|until| now < until)
            || self.is_full()
        {
            return None;
        }
        let word = Word {
            by: "bywash".into(),
            why: "the file says that elephants are to be held back without asking".into(),
            lasts: AUTO,
        };
        let grants = Grants::proposed(found);
        Some(self.rule(now, at, grants, Origin::Auto, word))
    }

    /// An operator approves a rule, or changes the one that holds.
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed.
    pub fn approve(
        &mut self,
        now: Timestamp,
        number: u32,
        change: Change,
        word: Word,
    ) -> Result<Note, Refused> {
        let (at, grants, word) = self.decided(number, change, word)?;
        Ok(self.rule(now, at, grants, Origin::Operator, word))
    }

    /// How the site was in the minute before the rule that holds since now, if that was measured. One that takes the place of
    /// another, or comes right after it, is told what that knew: the minute was the other's.
    pub fn was_before(&mut self, now: Timestamp, number: u32, measured: Option<Gauge>) {
        let Ok(at) = self.at(number) else { return };
        let before = self.entries[at].without_rule(now, measured);
        if let State::Ruled(rule) = &mut self.entries[at].state {
            rule.before = before.map(Box::new);
        }
    }

    /// An operator tries a rule; how the site was `before`, for as long as the trial.
    ///
    /// # Errors
    /// As of [`Book::approve`].
    pub fn try_out(
        &mut self,
        now: Timestamp,
        number: u32,
        change: Change,
        word: Word,
        before: Option<Gauge>,
    ) -> Result<Note, Refused> {
        let (at, grants, word) = self.decided(number, change, word)?;
        if word.lasts > Span::from_secs(600) {
            return Err(Refused::Trial);
        }
        let found = self.entries[at].found.as_ref();
        let predicted = found.and_then(|found| Effect::of(found, &grants).ok());
        let note = self.rule(now, at, grants, Origin::Trial, word);
        self.was_before(now, number, before);
        let entry = &mut self.entries[at];
        let before = entry.rule().and_then(|rule| rule.before.as_deref()).copied();
        let before = before.unwrap_or_default();
        entry.trial = Some(Trial { grants, predicted, before, during: None });
        Ok(note)
    }

    /// What a decision comes to, if it can be made.
    fn decided(
        &self,
        number: u32,
        change: Change,
        word: Word,
    ) -> Result<(usize, Grants, Word), Refused> {
        let at = self.at(number)?;
        let word = word.checked()?;
        let entry = &self.entries[at];
        if entry.found.as_ref().is_some_and(|found| found.transacts) {
            return Err(Refused::Transacts);
        }
        if matches!(entry.state, State::Ruled(_)) {
            self.not_in_file(at)?;
        } else if self.is_full() {
            return Err(Refused::Many);
        }
        let grants = entry.with(change)?;
        Ok((at, grants, word))
    }

    /// An operator does not want an elephant held back, nor proposed, for a while.
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed.
    pub fn reject(&mut self, now: Timestamp, number: u32, word: Word) -> Result<Note, Refused> {
        let at = self.at(number)?;
        self.not_in_file(at)?;
        let word = word.checked()?;
        let until = after(now, word.lasts);
        self.change(now, at, State::Rejected { word: word.clone(), until });
        let mut note = self.note(now, at, What::Rejected, &word.by, &word.why);
        note.until = Some(until);
        Ok(note)
    }

    /// An operator takes back what was decided.
    ///
    /// # Errors
    /// If nothing was; then nothing has changed.
    pub fn undo(&mut self, now: Timestamp, number: u32, word: Word) -> Result<Note, Refused> {
        let at = self.at(number)?;
        self.not_in_file(at)?;
        let word = word.checked()?;
        let is_auto = match &self.entries[at].state {
            State::Proposed => return Err(Refused::Nothing(number)),
            State::Ruled(rule) => rule.origin == Origin::Auto,
            State::Rejected { .. } => false,
        };
        // What nobody asked for would be there again at once.
        let until = after(now, word.lasts);
        let state =
            if is_auto { State::Rejected { word: word.clone(), until } } else { State::Proposed };
        self.entries[at].left_alone = Some(until);
        self.change(now, at, state);
        Ok(self.note(now, at, What::Undone, &word.by, &word.why))
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
        let kept = |entry: &Entry| if entry.asked { ASKED } else { FORGOTTEN };
        let is_kept =
            |entry: &Entry| entry.state != State::Proposed || now < after(entry.seen, kept(entry));
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

    /// Whoever decides has seen this revision of it.
    ///
    /// # Errors
    /// If it is another by now, or there is no such elephant.
    pub fn is_seen(&self, number: u32, seen: Option<u64>) -> Result<(), Refused> {
        let is = self.entry(number)?.revision;
        match seen {
            Some(seen) if seen != is => Err(Refused::Conflict { is, seen }),
            Some(_) | None => Ok(()),
        }
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

/// Of a page that uses much of several resources, what is sure, and of that the one that it fills more; slots last, as they are
/// held while another resource is waited for.
fn one_of_each(mut elephants: Vec<Elephant>) -> Vec<Elephant> {
    elephants.sort_by(|a, b| {
        let holds = |elephant: &Elephant| elephant.consists_of == Resource::Slots;
        let by_use = || b.of_capacity().total_cmp(&a.of_capacity());
        holds(a).cmp(&holds(b)).then(a.provisional.cmp(&b.provisional)).then_with(by_use)
    });
    let mut seen = HashSet::new();
    elephants.retain(|elephant| seen.insert(elephant.pattern.clone()));
    elephants
}
