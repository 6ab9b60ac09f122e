//! The decisions of operators that hold at all gateways of a fleet.
//!
//! Each gateway keeps the last decision about each subject, with the gateway and the revision that
//! it was made with. A newer decision replaces an older one, in whatever order they arrive. So all
//! gateways that have exchanged their decisions hold the same ones. A decision stays here after its
//! end, because an older one about its subject, from a gateway that was cut off, must not replace
//! it.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;

use crate::decision_meta::DecisionMeta;
use crate::note::{FleetStamp, Note, Subject};
use crate::overrides::MOST_OVERRIDES;
use crate::refused::MOST_ENTRIES;
use crate::text::next_revision;
use crate::time::after;

/// The maximum number of subjects whose last decision is kept.
const MOST_TOPICS: usize = MOST_OVERRIDES + 2 * MOST_ENTRIES;

/// The last possible revision, which is the last millisecond of the year 9999. A larger one comes from
/// a broken program. Its successors would have the same number.
const LAST_REVISION: u64 = 253_402_300_799_999;

/// Returns whether a decision is so old that it cannot hold.
fn is_old(now: Timestamp, note: &Note) -> bool {
    now >= after(note.at, DecisionMeta::LASTS.1)
}

/// The subject of a decision. Two decisions about one topic exclude each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Bypass,
    Class(String),
    Elephant(String),
}

impl Topic {
    /// Returns the topic of a subject; `None` if no operator decides about it for the whole fleet.
    fn of(subject: &Subject) -> Option<Self> {
        match subject {
            Subject::Bypass => Some(Self::Bypass),
            Subject::Class { class, .. } => Some(Self::Class(class.clone())),
            Subject::Elephant { pattern, .. } => Some(Self::Elephant(pattern.clone())),
            Subject::Population { .. } | Subject::File => None,
        }
    }

    /// Returns the kind of the topic, and the name of the class or the pattern of the requests.
    fn text(&self) -> (&str, &str) {
        match self {
            Self::Bypass => ("bypass", ""),
            Self::Class(class) => ("class", class),
            Self::Elephant(pattern) => ("elephant", pattern),
        }
    }
}

/// The last decision about each subject. See the documentation of the module.
#[derive(Debug, Default)]
pub struct FleetDecisions {
    last: BTreeMap<Topic, Note>,
    /// The decisions of this gateway that were not sent yet.
    unsent: Vec<Note>,
}

impl FleetDecisions {
    /// Gives the decision of an operator at this gateway its revision, and keeps it to be sent.
    /// Does nothing to a note of another kind.
    pub fn stamp(&mut self, gateway: &str, now: Timestamp, note: &mut Note) {
        let Some(topic) = Topic::of(&note.subject).filter(|_| note.is_of_operator()) else {
            return;
        };
        let before = self.last.get(&topic).and_then(|note| note.fleet.as_ref());
        let revision = next_revision(before.map_or(0, |stamp| stamp.revision), now);
        note.fleet = Some(FleetStamp { revision, gateway: gateway.to_owned() });
        self.unsent.push(note.clone());
        self.insert(topic, note.clone());
    }

    /// Returns whether the decision `note` replaces the known one about its subject. None replaces
    /// it that is of another kind, so old that it cannot hold, or without a possible revision.
    pub fn is_news(&self, now: Timestamp, note: &Note) -> bool {
        let topic =
            Topic::of(&note.subject).filter(|_| note.is_of_operator() && !is_old(now, note));
        let (Some(topic), Some(stamp)) = (topic, &note.fleet) else { return false };
        let known = self.last.get(&topic).and_then(|known| known.fleet.as_ref());
        stamp.revision <= LAST_REVISION && Some(stamp) > known
    }

    /// Keeps a decision of another gateway, or of an earlier process, if it replaces the known one.
    pub fn learn(&mut self, now: Timestamp, note: &Note) {
        if self.is_news(now, note)
            && let Some(topic) = Topic::of(&note.subject)
        {
            self.insert(topic, note.clone());
        }
    }

    fn insert(&mut self, topic: Topic, note: Note) {
        self.last.insert(topic, note);
        if self.last.len() > MOST_TOPICS {
            let oldest = self.last.iter().min_by_key(|(_, note)| &note.fleet);
            if let Some(oldest) = oldest.map(|(topic, _)| topic.clone()) {
                self.last.remove(&oldest);
            }
        }
    }

    /// Forgets the decisions that are older than any decision that may still hold.
    fn forget_old(&mut self, now: Timestamp) {
        self.last.retain(|_, note| !is_old(now, note));
    }

    /// Returns the decisions of this gateway that were made since the last call.
    pub fn take_unsent(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.unsent)
    }

    /// Returns the decisions that may still hold or that replace one that may.
    pub fn known(&mut self, now: Timestamp) -> Vec<Note> {
        self.forget_old(now);
        self.last.values().cloned().collect()
    }

    /// Returns a text that is the same at all gateways with the same decisions, and another one at
    /// gateways with others.
    pub fn summary(&mut self, now: Timestamp) -> String {
        self.forget_old(now);
        let mut text = String::new();
        for (topic, note) in &self.last {
            let (kind, name) = topic.text();
            if let Some(FleetStamp { revision, gateway }) = &note.fleet {
                let _ = writeln!(text, "{kind} {name:?} {revision} {gateway:?}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::What;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn note(second: i64, by: &str, why: &str) -> Note {
        Note {
            at: at(second),
            subject: Subject::Bypass,
            what: What::Overridden,
            by: by.into(),
            why: why.into(),
            limits: None,
            until: Some(at(second + 3600)),
            unwritten: None,
            fleet: None,
        }
    }

    fn made(known: &mut FleetDecisions, gateway: &str, second: i64, why: &str) -> Note {
        let mut note = note(second, "the operator", why);
        known.stamp(gateway, at(second), &mut note);
        note
    }

    #[test]
    fn all_gateways_keep_the_same_decision_in_whatever_order_they_learn_them() {
        let (mut one, mut two) = (FleetDecisions::default(), FleetDecisions::default());
        let first = made(&mut one, "one", 5, "first");
        let second = made(&mut two, "two", 5, "second");
        assert_eq!(one.take_unsent(), std::slice::from_ref(&first));
        assert_eq!(one.take_unsent(), []);
        assert_ne!(one.summary(at(6)), two.summary(at(6)));
        one.learn(at(6), &second);
        two.learn(at(6), &first);
        assert_eq!(one.summary(at(6)), two.summary(at(6)));
        assert_eq!(one.known(at(6)), std::slice::from_ref(&second));
        assert_eq!(two.known(at(6)), [second]);
        assert_eq!(two.take_unsent().len(), 1);
    }

    #[test]
    fn a_later_decision_replaces_one_that_was_made_by_a_clock_ahead() {
        let (mut ahead, mut right) = (FleetDecisions::default(), FleetDecisions::default());
        let early = made(&mut ahead, "ahead", 1_000_000, "early");
        right.learn(at(7), &early);
        let late = made(&mut right, "right", 7, "late");
        assert!(ahead.is_news(at(7), &late));
        assert!(!right.is_news(at(7), &early));
    }

    #[test]
    fn notes_that_no_operator_decided_are_not_shared() {
        let mut known = FleetDecisions::default();
        for mut note in [
            note(1, "bywash", "its time is over"),
            note(1, "the file", "reloaded"),
            Note { what: What::Ended, ..note(1, "the operator", "ended") },
            Note { subject: Subject::File, ..note(1, "the operator", "reloaded") },
        ] {
            known.stamp("one", at(1), &mut note);
            assert_eq!(note.fleet, None);
            note.fleet = Some(FleetStamp { revision: u64::MAX, gateway: "two".into() });
            assert!(!known.is_news(at(1), &note));
            known.learn(at(1), &note);
        }
        assert!(known.take_unsent().is_empty() && known.known(at(1)).is_empty());
    }

    #[test]
    fn an_ended_decision_stays_until_no_older_one_can_hold() {
        let mut known = FleetDecisions::default();
        let mut one = note(0, "the operator", "short");
        known.stamp("one", at(0), &mut one);
        assert_eq!(known.known(at(30 * 86_400 - 1)).len(), 1);
        assert_eq!(known.known(at(30 * 86_400)).len(), 0);
    }

    #[test]
    fn the_number_of_subjects_is_bounded() {
        let mut known = FleetDecisions::default();
        for number in 0..MOST_TOPICS as u32 + 9 {
            let subject = Subject::Elephant { number, pattern: format!("GET /{number}") };
            let mut note = Note { subject, ..note(i64::from(number), "the operator", "slow") };
            known.stamp("one", note.at, &mut note);
        }
        assert_eq!(known.last.len(), MOST_TOPICS);
        assert!(!known.last.contains_key(&Topic::Elephant("GET /8".into())));
    }

    #[test]
    fn an_impossible_revision_does_not_block_its_subject() {
        let (mut one, mut two) = (FleetDecisions::default(), FleetDecisions::default());
        let stamp = |revision| Some(FleetStamp { revision, gateway: "two".into() });
        one.learn(at(1), &Note { fleet: stamp(u64::MAX), ..note(1, "the operator", "broken") });
        assert!(one.known(at(1)).is_empty());
        let early = Note { fleet: stamp(LAST_REVISION - 1), ..note(1, "the operator", "early") };
        one.learn(at(1), &early);
        two.learn(at(1), &early);
        let later = made(&mut one, "one", 2, "later");
        assert!(two.is_news(at(2), &later));
    }

    #[test]
    fn a_decision_that_cannot_hold_is_not_news() {
        let known = FleetDecisions::default();
        let fleet = Some(FleetStamp { revision: 7, gateway: "two".into() });
        let one = Note { fleet, ..note(0, "the operator", "old") };
        assert!(known.is_news(at(30 * 86_400 - 1), &one));
        assert!(!known.is_news(at(30 * 86_400), &one));
    }
}
