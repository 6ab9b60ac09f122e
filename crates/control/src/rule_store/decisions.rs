//! The operators' decisions about elephants.

use bywash_engine::classify::Pattern;
use bywash_units::TimeSpan;
use jiff::Timestamp;

use super::RuleStore;
use crate::decision_meta::DecisionMeta;
use crate::effect::{Effect, Gauge};
use crate::elephant::Elephant;
use crate::entry::{Origin, Rule, State, Trial};
use crate::note::{Note, Subject, What};
use crate::refused::Refused;
use crate::rule_limits::{Change, RuleLimits};
use crate::time::{after, began_by};

/// The time for which a finding holds. If the finding is not confirmed for this long, it is over.
const FINDING_TIMEOUT: TimeSpan = TimeSpan::from_secs(60);
/// The longest duration of a trial.
const LONGEST_TRIAL: TimeSpan = TimeSpan::from_secs(600);

impl RuleStore {
    /// Adds the elephant `found` because an operator has named its pattern, however little it uses.
    /// Then bywash can show the effect of a rule for it, and the operator can approve one. Returns
    /// the number of the entry, with a note for the audit log if the entry has changed. An existing
    /// entry stays unchanged unless its finding is over.
    ///
    /// # Errors
    /// If a rule for such requests is not permitted, or there is no room for another entry.
    pub fn ask(
        &mut self,
        now: Timestamp,
        found: Elephant,
        meta: DecisionMeta,
    ) -> Result<(u32, Option<Note>), Refused> {
        let meta = meta.checked()?;
        if found.transacts {
            return Err(Refused::Transacts);
        }
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.pattern == found.pattern) {
            // An old finding says nothing about the present.
            let is_over =
                entry.state == State::Proposed && now >= after(entry.seen, FINDING_TIMEOUT);
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
        Ok((number, Some(self.note(now, at, What::Asked, &meta.by, &meta.why))))
    }

    /// Approves a rule, or changes the rule in force. Returns the note for the audit log.
    ///
    /// # Errors
    /// If the decision is invalid or not possible. Then nothing has changed.
    pub fn approve(
        &mut self,
        now: Timestamp,
        number: u32,
        change: Change,
        meta: DecisionMeta,
    ) -> Result<Note, Refused> {
        let (at, limits, meta) = self.decided(number, change, meta)?;
        Ok(self.rule(now, at, limits, Origin::Operator, meta))
    }

    /// Stores `measured`, the performance of the site in the minute before the rule that begins at
    /// `now`; `None` if it was not measured. If another rule was in force in that minute, the
    /// measurement from before that rule is stored instead.
    pub fn was_before(&mut self, now: Timestamp, number: u32, measured: Option<Gauge>) {
        let Ok(at) = self.at(number) else { return };
        let before = self.entries[at].without_rule(now, measured);
        let entry = &mut self.entries[at];
        if let State::Ruled(rule) = &mut entry.state {
            rule.before = before.map(Box::new);
            if let Some(trial) = entry.trial.as_mut().filter(|_| rule.origin == Origin::Trial) {
                trial.before = before.unwrap_or_default();
            }
        }
    }

    /// Begins a trial of a rule, and returns the note for the audit log. `before` is the
    /// performance of the site before the trial, over a time as long as the trial.
    ///
    /// # Errors
    /// If the decision is invalid or not possible, or if the trial is longer than 10 minutes. Then
    /// nothing has changed.
    pub fn try_out(
        &mut self,
        now: Timestamp,
        number: u32,
        change: Change,
        meta: DecisionMeta,
        before: Option<Gauge>,
    ) -> Result<Note, Refused> {
        let (at, limits, meta) = self.decided(number, change, meta)?;
        if meta.lasts > LONGEST_TRIAL {
            return Err(Refused::Trial);
        }
        let found = self.entries[at].found.as_ref();
        let predicted = found.and_then(|found| Effect::of(found, &limits).ok());
        let note = self.rule(now, at, limits, Origin::Trial, meta);
        let trial = Trial { limits, predicted, before: Gauge::default(), during: None };
        self.entries[at].trial = Some(trial);
        self.was_before(now, number, before);
        Ok(note)
    }

    /// Checks a decision. Returns the index of the entry, the limits of the rule, and the checked
    /// author, reason and duration.
    fn decided(
        &self,
        number: u32,
        change: Change,
        meta: DecisionMeta,
    ) -> Result<(usize, RuleLimits, DecisionMeta), Refused> {
        let at = self.at(number)?;
        let meta = meta.checked()?;
        let entry = &self.entries[at];
        if entry.found.as_ref().is_some_and(|found| found.transacts) {
            return Err(Refused::Transacts);
        }
        if matches!(entry.state, State::Ruled(_)) {
            self.not_in_file(at)?;
        } else if self.is_full() {
            return Err(Refused::Many);
        }
        let limits = entry.with(change)?;
        Ok((at, limits, meta))
    }

    /// Rejects a proposal: until the end of the decision, the elephant is neither held back nor
    /// proposed. Returns the note for the audit log.
    ///
    /// # Errors
    /// If the decision is invalid or not possible. Then nothing has changed.
    pub fn reject(
        &mut self,
        now: Timestamp,
        number: u32,
        meta: DecisionMeta,
    ) -> Result<Note, Refused> {
        let at = self.at(number)?;
        self.not_in_file(at)?;
        let meta = meta.checked()?;
        let until = after(now, meta.lasts);
        self.decided = true;
        self.change(now, at, State::Rejected { meta: meta.clone(), until });
        let mut note = self.note(now, at, What::Rejected, &meta.by, &meta.why);
        note.until = Some(until);
        Ok(note)
    }

    /// Undoes the decision in force about an elephant, and returns the note for the audit log. For
    /// the duration of `meta`, bywash applies no automatic rule to the elephant.
    ///
    /// # Errors
    /// If no decision is in force. Then nothing has changed.
    pub fn undo(
        &mut self,
        now: Timestamp,
        number: u32,
        meta: DecisionMeta,
    ) -> Result<Note, Refused> {
        let at = self.at(number)?;
        self.not_in_file(at)?;
        let meta = meta.checked()?;
        if self.entries[at].state == State::Proposed {
            return Err(Refused::Nothing(number));
        }
        // Otherwise, with `act = "auto"` in the configuration file, bywash would hold the elephant
        // back again at once.
        self.entries[at].left_alone = Some(after(now, meta.lasts));
        self.change(now, at, State::Proposed);
        let note = self.note(now, at, What::Undone, &meta.by, &meta.why);
        Ok(Note { until: self.entries[at].left_alone, ..note })
    }

    /// Puts a decision in force that was made at another gateway of the fleet. Returns the number of
    /// the elephant; `None` if nothing has changed. A decision that has ended since is not put in
    /// force, but an earlier one about the same elephant ends.
    ///
    /// # Errors
    /// If the decision is not possible here. Then no decision has changed.
    pub fn follow(&mut self, now: Timestamp, decided: &Note) -> Result<Option<u32>, Refused> {
        let Subject::Elephant { pattern, .. } = &decided.subject else { return Ok(None) };
        let meta = decided.meta().checked()?;
        if pattern.parse::<Pattern>().is_err() {
            return Err(Refused::Pattern);
        }
        let holds = decided.holds(now);
        let left_alone = decided.until.filter(|until| decided.what == What::Undone && now < *until);
        let is_known = self.entries.iter().any(|entry| entry.pattern == *pattern);
        if !is_known && holds.is_none() && left_alone.is_none() {
            return Ok(None);
        }
        let at = self.place_of(now, pattern).ok_or(Refused::Full)?;
        self.not_in_file(at)?;
        let mut trial = None;
        let state = match (decided.what, decided.limits, holds) {
            (What::Rejected, _, Some((_, until))) => State::Rejected { meta, until },
            (What::Approved | What::Tried, Some(limits), Some((since, until))) => {
                let origin = self.is_rule_possible(at, decided.what, limits, meta.lasts)?;
                let predicted = self.entries[at].found.as_ref();
                let predicted = predicted.and_then(|found| Effect::of(found, &limits).ok());
                trial = (origin == Origin::Trial).then(|| Trial {
                    limits,
                    predicted,
                    before: Gauge::default(),
                    during: None,
                });
                let DecisionMeta { by, why, .. } = meta;
                let exempt = self.entries[at].rule().map(|rule| rule.exempt.clone());
                let (exempt, until, before) = (exempt.unwrap_or_default(), Some(until), None);
                State::Ruled(Rule { limits, exempt, origin, by, why, since, until, before })
            }
            _ => State::Proposed,
        };
        self.decided = true;
        self.change(now, at, state);
        let entry = &mut self.entries[at];
        entry.trial = trial.or(entry.trial.take());
        if let Some(until) = left_alone {
            entry.left_alone = Some(began_by(now, decided.at, until).1);
        }
        Ok(Some(entry.number))
    }

    /// Returns the origin of a rule of another gateway. Returns an error if the rule is not possible
    /// for the elephant at index `at`.
    fn is_rule_possible(
        &self,
        at: usize,
        what: What,
        limits: RuleLimits,
        lasts: TimeSpan,
    ) -> Result<Origin, Refused> {
        let origin = if what == What::Tried { Origin::Trial } else { Origin::Operator };
        let entry = &self.entries[at];
        if !matches!(entry.state, State::Ruled(_)) && self.is_full() {
            Err(Refused::Many)
        } else if entry.found.as_ref().is_some_and(|found| found.transacts) {
            Err(Refused::Transacts)
        } else if origin == Origin::Trial && lasts > LONGEST_TRIAL {
            Err(Refused::Trial)
        } else {
            limits.wrong().map_or(Ok(origin), |wrong| Err(Refused::RuleLimits(wrong)))
        }
    }

    /// Returns whether the decision `decided` holds at `now`, and no decision about the same elephant
    /// is in force or has ended since.
    pub fn lacks(&self, now: Timestamp, decided: &Note) -> bool {
        let Subject::Elephant { pattern, .. } = &decided.subject else { return false };
        let entry = self.entries.iter().find(|entry| entry.pattern == *pattern);
        let is_open = entry.is_none_or(|entry| {
            let has_ended = entry.ended.as_ref().is_some_and(|ended| ended.at >= decided.at);
            entry.state == State::Proposed && !has_ended
        });
        decided.holds(now).is_some() && is_open
    }

    /// Checks that `seen`, the revision that an operator has seen, is the current one. `None` is
    /// accepted.
    ///
    /// # Errors
    /// If the revision has changed, or there is no such elephant.
    pub fn is_seen(&self, number: u32, seen: Option<u64>) -> Result<(), Refused> {
        let is = self.entry(number)?.revision;
        match seen {
            Some(seen) if seen != is => Err(Refused::Conflict { is, seen }),
            Some(_) | None => Ok(()),
        }
    }
}
