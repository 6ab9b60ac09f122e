//! The rules in the configuration file, as they enter the rule store.

use jiff::Timestamp;

use super::RuleStore;
use crate::entry::{Entry, Origin, Rule, State};
use crate::note::{CONFIG_FILE, Note, What};
use crate::refused::{MOST_RULES, Refused};
use crate::rule_limits::RuleLimits;

/// A rule in the configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRule {
    /// The pattern that the rule's requests match.
    pub pattern: String,
    /// The limits that the rule sets.
    pub limits: RuleLimits,
    /// The reason that the file gives for the rule.
    pub why: String,
}

impl RuleStore {
    /// Replaces all earlier rules of the configuration file by `rules`. They also replace
    /// operators' decisions about the same requests. Returns notes for the audit log.
    ///
    /// # Errors
    /// If there are too many rules. Then nothing has changed.
    pub fn file_says(&mut self, now: Timestamp, rules: &[FileRule]) -> Result<Vec<Note>, Refused> {
        let stands = |entry: &Entry| rules.iter().any(|rule| rule.pattern == entry.pattern);
        let is_other = |entry: &&Entry| match &entry.state {
            State::Ruled(rule) => rule.origin != Origin::File && !stands(entry),
            State::Proposed | State::Rejected { .. } => false,
        };
        let others = self.entries.iter().filter(is_other).count();
        if others + rules.len() > MOST_RULES {
            return Err(Refused::Many);
        }
        let gone: Vec<usize> = (0..self.entries.len())
            .filter(|at| is_of_file(&self.entries[*at]) && !stands(&self.entries[*at]))
            .collect();
        let mut notes = Vec::new();
        for at in gone {
            self.change(now, at, State::Proposed);
            notes.push(self.note(
                now,
                at,
                What::Undone,
                CONFIG_FILE,
                "the rule is no longer in the configuration file",
            ));
        }
        for rule in rules {
            notes.extend(self.one_of_file(now, rule));
        }
        Ok(notes)
    }

    fn one_of_file(&mut self, now: Timestamp, written: &FileRule) -> Option<Note> {
        let FileRule { pattern, limits, why } = written;
        let at = self.place_of(now, pattern)?;
        let holds =
            |rule: &Rule| rule.origin == Origin::File && rule.limits == *limits && rule.why == *why;
        if matches!(&self.entries[at].state, State::Ruled(rule) if holds(rule)) {
            return None;
        }
        let rule = Rule {
            limits: *limits,
            exempt: Vec::new(),
            origin: Origin::File,
            by: CONFIG_FILE.into(),
            why: why.clone(),
            since: now,
            until: None,
            before: None,
        };
        self.change(now, at, State::Ruled(rule));
        let note = self.note(now, at, What::Approved, CONFIG_FILE, why);
        Some(Note { limits: Some(*limits), ..note })
    }
}

fn is_of_file(entry: &Entry) -> bool {
    matches!(&entry.state, State::Ruled(rule) if rule.origin == Origin::File)
}
