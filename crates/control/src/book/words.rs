//! What operators say.

use bywash_units::Span;
use jiff::Timestamp;

use super::{Book, Refused, after};
use crate::effect::{Effect, Gauge};
use crate::elephant::Elephant;
use crate::entry::{Origin, State, Trial};
use crate::grants::{Change, Grants};
use crate::note::{Note, What};
use crate::word::Word;

/// What was found is found again so soon, or it is over.
const LATELY: Span = Span::from_secs(60);

impl Book {
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
            if !is_over {
                if entry.asked {
                    entry.seen = now;
                }
                return Ok((entry.number, None));
            }
        }
        let at = self.place_of(now, &found.pattern).ok_or(Refused::Full)?;
        let entry = &mut self.entries[at];
        (entry.found, entry.seen) = (Some(found), now);
        (entry.told, entry.asked) = (true, true);
        let number = entry.number;
        Ok((number, Some(self.note(now, at, What::Asked, &word.by, &word.why))))
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
        self.decided = true;
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
        if self.entries[at].state == State::Proposed {
            return Err(Refused::Nothing(number));
        }
        // Where the file says so it would be held back again at once.
        self.entries[at].left_alone = Some(after(now, word.lasts));
        self.change(now, at, State::Proposed);
        Ok(self.note(now, at, What::Undone, &word.by, &word.why))
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
}
