//! The findings of a run, counted by corpus class and by origin.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The results for the messages of one corpus class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of cases of the class in the corpus.
    pub cases: usize,
    /// Number of cases of which no complete request was forwarded.
    pub refused: usize,
    /// Number of cases whose expectation was not met.
    pub unmet: usize,
    /// Number of mutations of the class's cases that were sent.
    pub mutations: usize,
    /// Number of mutations of which no complete request was forwarded.
    pub mutations_refused: usize,
    /// Number of messages, including mutations, of which the gateway forwarded more requests than
    /// the reference finds in them.
    pub beyond: usize,
    /// Number of messages, including mutations, whose forwarded bytes are invalid, incomplete, not
    /// in the plainest form or not the client's request.
    pub faulty: usize,
}

/// The results with one origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OriginTally {
    /// Name of the origin, as in [`ORIGINS`](super::origin::ORIGINS).
    pub name: String,
    /// Version of the origin, as the origin reports it.
    pub version: String,
    /// Number of forwarded connections whose bytes were replayed.
    pub streams: usize,
    /// Number of forwarded connections that were not replayed because of the time limit.
    pub left_out: usize,
    /// Number of requests that the origin understood as the reference does.
    pub agreed: usize,
    /// Number of requests that the origin refused.
    pub refused: usize,
    /// Number of requests that the origin answered without calling the application.
    pub own: usize,
    /// Number of requests that the origin understood but the reference does not find in the bytes.
    pub beyond: usize,
    /// Number of cases sent through the gateway to this origin.
    pub live: usize,
    /// Number of disagreements, in replayed bytes and in cases sent through the gateway.
    pub faults: usize,
}

/// The stage of the test in which a finding was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The case's expectation is not met.
    Expectation,
    /// The forwarded bytes are wrong, whatever an origin makes of them.
    Forwarded,
    /// The named origin understands the replayed bytes differently from the reference.
    Origin(String),
    /// The named origin behind the gateway understands the case differently from the reference.
    Live(String),
    /// The reference does not find the forwarded request in the client's bytes. This alone is not a
    /// fault.
    Beyond,
}

/// One disagreement, or one unmet expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The message that led to the finding.
    pub source: Source,
    /// The stage of the test in which the finding was made.
    pub stage: Stage,
    /// Description of the finding.
    pub what: String,
    /// The bytes of the message, or the bytes that were forwarded for it.
    pub bytes: Vec<u8>,
}

/// A reference to a message: a case of the corpus, or a mutation of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Class of the case in the corpus.
    pub class: String,
    /// Name of the case.
    pub case: String,
    /// Number of the mutation, from 1; 0 means the case itself.
    pub mutation: usize,
}

/// All results of a run.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// Tallies by corpus class.
    pub classes: BTreeMap<String, Tally>,
    /// Tallies of the origins, in the order in which they are defined.
    pub origins: Vec<OriginTally>,
    /// Findings, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// Number of mutations that were not sent because of the time limit.
    pub left_out: usize,
}

impl Results {
    /// Adds the results of another thread to these.
    pub fn join(&mut self, other: Self) {
        for (class, tally) in other.classes {
            let sum = self.classes.entry(class).or_default();
            sum.cases += tally.cases;
            sum.refused += tally.refused;
            sum.unmet += tally.unmet;
            sum.mutations += tally.mutations;
            sum.mutations_refused += tally.mutations_refused;
            sum.beyond += tally.beyond;
            sum.faulty += tally.faulty;
        }
        self.origins.extend(other.origins);
        self.findings.extend(other.findings);
        self.left_out += other.left_out;
    }

    /// Records one finding for a message and a stage, with the texts of `what`. Records nothing if
    /// `what` is empty.
    pub fn find(&mut self, source: &Source, stage: Stage, what: &[String], bytes: &[u8]) {
        let known = self.findings.iter().any(|f| f.source == *source && f.stage == stage);
        if !what.is_empty() && !known {
            let (source, what, bytes) = (source.clone(), what.join("; "), bytes.to_vec());
            self.findings.push(Finding { source, stage, what, bytes });
        }
    }

    /// Returns whether no finding counts as a fault.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.stage == Stage::Beyond)
    }

    /// Returns the results as JSON for a report.
    pub fn json(&self) -> Value {
        let classes: BTreeMap<&str, Value> =
            self.classes.iter().map(|(name, tally)| (name.as_str(), tally.json())).collect();
        json!({
            "classes": classes,
            "origins": self.origins.iter().map(OriginTally::json).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(Finding::json).collect::<Vec<_>>(),
            "mutations_left_out": self.left_out,
        })
    }
}

impl Tally {
    fn json(self) -> Value {
        json!({
            "cases": self.cases, "refused": self.refused, "unmet": self.unmet,
            "mutations": self.mutations, "mutations_refused": self.mutations_refused,
            "beyond_the_reference": self.beyond, "faulty": self.faulty,
        })
    }
}

impl OriginTally {
    fn json(&self) -> Value {
        json!({
            "name": self.name, "version": self.version, "connections": self.streams,
            "left_out": self.left_out, "agreed": self.agreed, "refused": self.refused,
            "own_answers": self.own, "beyond_the_reference": self.beyond, "live": self.live,
            "disagreements": self.faults,
        })
    }
}

impl Finding {
    fn json(&self) -> Value {
        let Source { class, case, mutation } = &self.source;
        json!({
            "class": class, "case": case, "mutation": mutation, "where": self.stage.to_string(),
            "what": self.what, "bytes": self.bytes.escape_ascii().to_string(),
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.class, self.case)?;
        if self.mutation > 0 { write!(f, " mutation {}", self.mutation) } else { Ok(()) }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expectation => f.write_str("expectation"),
            Self::Forwarded => f.write_str("forwarded"),
            Self::Origin(name) => write!(f, "replayed to {name}"),
            Self::Live(name) => write!(f, "live to {name}"),
            Self::Beyond => f.write_str("beyond the reference"),
        }
    }
}
