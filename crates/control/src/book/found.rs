//! What was found becomes an entry, and a rule where the file says so.

use std::collections::HashSet;

use bywash_units::Span;
use jiff::Timestamp;

use super::{Book, MOST_ENTRIES};
use crate::elephant::{Elephant, Resource};
use crate::entry::{Entry, Origin, State};
use crate::grants::Grants;
use crate::note::{Note, What};
use crate::word::Word;

/// Of a resource's capacity, what an elephant uses at least that is held back without asking.
const MUCH: f64 = 0.2;
/// Above this part of one client's an elephant may be that client's work, or its wish: an operator is asked.
const MUCH_BY_ONE: f64 = 0.3;
/// For how long what nobody has asked for holds.
const AUTO: Span = Span::from_secs(3600);

/// What is done about what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// It is proposed.
    #[default]
    Propose,
    /// Whatever is sure and fills processors is held back for an hour; what is not is proposed.
    Auto,
}

impl Book {
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
            entry.seen == now || !entry.is_open(now) || entry.asked || !is_provisional
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
    pub(super) fn place_of(&mut self, now: Timestamp, pattern: &str) -> Option<usize> {
        if let Some(at) = self.entries.iter().position(|entry| entry.pattern == pattern) {
            return Some(at);
        }
        if self.entries.len() == MOST_ENTRIES {
            let open = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_open(now));
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
            || entry.is_left_alone(now)
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
