//! Turns findings into entries of the rule store, and into rules if the configuration file says so.

use std::collections::HashSet;

use bywash_units::TimeSpan;
use jiff::Timestamp;

use super::RuleStore;
use crate::decision_meta::DecisionMeta;
use crate::elephant::{Elephant, Resource};
use crate::entry::{Entry, Origin, State};
use crate::note::{BYWASH, Note, What};
use crate::refused::MOST_ENTRIES;
use crate::rule_limits::RuleLimits;

/// An elephant that uses less than this fraction of a resource's capacity is not held back without
/// approval.
const AUTO_MIN_USE: f64 = 0.2;
/// If one client may have caused more than this fraction of an elephant's work, an operator has to
/// decide about a rule. That client may cause the whole load, or may have made the page look heavy
/// on purpose.
const AUTO_MAX_CLIENT_SHARE: f64 = 0.3;
/// How long an automatic rule holds, without an operator's approval.
const AUTO_DURATION: TimeSpan = TimeSpan::from_secs(3600);

/// The action on a finding, as configured by `elephants.act`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// Propose every finding to operators.
    #[default]
    Propose,
    /// Hold back a finding for an hour if it is certain and fills processors. Propose all others.
    Auto,
}

impl RuleStore {
    /// Replaces all earlier findings by `elephants`. Returns notes for the audit log about findings
    /// that are certain for the first time, and about rules that begin. A provisional finding that
    /// is not confirmed is removed, because it was noise.
    pub fn found(&mut self, now: Timestamp, elephants: Vec<Elephant>, act: Act) -> Vec<Note> {
        let mut notes = Vec::new();
        for elephant in one_of_each(self.without_ruled(elephants)) {
            let Some(at) = self.place_of(now, &elephant.pattern) else { continue };
            let entry = &mut self.entries[at];
            let is_sure = !elephant.provisional;
            entry.found = Some(elephant);
            entry.seen = now;
            // An uncertain finding may be noise, so an operator's request for this elephant
            // remains.
            entry.asked &= !is_sure;
            if is_sure && !std::mem::replace(&mut entry.told, true) {
                notes.push(self.note(
                    now,
                    at,
                    What::Proposed,
                    BYWASH,
                    "these requests use much of a resource",
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

    /// Removes each finding about an elephant that already has a rule because of another resource.
    /// The effect of that rule is measured on the rule's own resource. A rule of the configuration
    /// file has no resource, so it removes no finding.
    fn without_ruled(&self, mut elephants: Vec<Elephant>) -> Vec<Elephant> {
        elephants.retain(|elephant| {
            let of = self.entries.iter().find(|entry| entry.pattern == elephant.pattern);
            let is_ruled = |entry: &&Entry| matches!(&entry.state, State::Ruled(rule) if rule.origin != Origin::File);
            let ruled = of.filter(is_ruled);
            let found = ruled.and_then(|entry| entry.found.as_ref());
            found.is_none_or(|found| found.resource == elephant.resource)
        });
        elephants
    }

    /// Returns the patterns of the elephants that are listed because operators named them. The
    /// caller passes their present use to [`RuleStore::uses`].
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| entry.asked).map(|entry| entry.pattern.as_str())
    }

    /// Updates the present use of the elephants that are listed because operators named them.
    pub fn uses(&mut self, elephants: Vec<Elephant>) {
        for elephant in elephants {
            let is = |entry: &&mut Entry| entry.asked && entry.pattern == elephant.pattern;
            if let Some(entry) = self.entries.iter_mut().find(is) {
                entry.found = Some(elephant);
            }
        }
    }

    /// Returns the index of the elephant with this pattern, and adds the elephant if necessary. If
    /// the store is full, an entry without a decision is removed: the one that was found longest
    /// ago. Returns `None` if all entries have decisions in force.
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

    /// Applies a rule to an elephant that is certain, if the configuration file says so and no
    /// operator has decided. Returns the note for the audit log if a rule began.
    fn act(&mut self, now: Timestamp, at: usize, act: Act) -> Option<Note> {
        let entry = &self.entries[at];
        let found = entry.found.as_ref()?;
        let is_one = found.twins.is_empty() && !found.transacts;
        let is_sure = !found.provisional
            && found.by_one <= AUTO_MAX_CLIENT_SHARE
            && found.is_plausible()
            && is_one;
        let is_much =
            found.consists_of == Resource::Processors && found.of_capacity() >= AUTO_MIN_USE;
        if act == Act::Propose
            || !is_sure
            || !is_much
            || entry.state != State::Proposed
            || entry.is_left_alone(now)
            || self.is_full()
        {
            return None;
        }
        let meta = DecisionMeta {
            by: BYWASH.into(),
            why: "the configuration file says to hold back elephants without asking \
                  (`elephants.act`)"
                .into(),
            lasts: AUTO_DURATION,
        };
        let limits = RuleLimits::proposed(found);
        Some(self.rule(now, at, limits, Origin::Auto, meta))
    }
}

/// Keeps one finding for each page. If a page uses much of several resources, the order of
/// preference is:
///
/// 1. Resources other than slots, because a request holds its slot while it waits for another
///    resource.
/// 2. Certain findings.
/// 3. The resource of which the page uses the larger fraction.
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
