//! What a run has found, counted by class and by origin.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// What became of the messages of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases of the corpus.
    pub cases: usize,
    /// Cases of which nothing whole was forwarded.
    pub refused: usize,
    /// Cases that were not treated as they ask for.
    pub unmet: usize,
    /// Mutations sent.
    pub mutations: usize,
    /// Mutations of which nothing whole was forwarded.
    pub mutations_refused: usize,
    /// Messages, mutations included, of which more requests were forwarded than the reference finds.
    pub beyond: usize,
    /// Messages, mutations included, of which something was forwarded that is not plain, not whole
    /// or not what the client said.
    pub faulty: usize,
}

/// What became of the forwarded bytes at an origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OriginTally {
    /// As in the table of origins.
    pub name: String,
    /// As it says itself.
    pub version: String,
    /// Connections replayed.
    pub streams: usize,
    /// Connections that were left out, as the time was over.
    pub left_out: usize,
    /// Requests understood as they are.
    pub agreed: usize,
    /// Requests refused.
    pub refused: usize,
    /// Requests answered without asking the application.
    pub own: usize,
    /// Requests understood where the reference finds none.
    pub beyond: usize,
    /// Cases sent through the gateway to this very origin.
    pub live: usize,
    /// Disagreements of both kinds.
    pub faults: usize,
}

/// Where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The case's expectation is not met.
    Expectation,
    /// What the gateway forwarded is wrong by itself.
    Forwarded,
    /// An origin understands it otherwise.
    Origin(String),
    /// An origin behind the gateway does.
    Live(String),
    /// The reference finds no such request in what the client sent. No fault by itself.
    Beyond,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The case, and the number of the mutation.
    pub source: Source,
    /// Where.
    pub stage: Stage,
    /// What.
    pub what: String,
    /// The message, or what was forwarded of it.
    pub bytes: Vec<u8>,
}

/// Which message it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Of the corpus.
    pub class: String,
    /// Of the corpus.
    pub case: String,
    /// 0 is the case itself.
    pub mutation: usize,
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// By class.
    pub classes: BTreeMap<String, Tally>,
    /// In the order of the table of origins.
    pub origins: Vec<OriginTally>,
    /// In the order in which they were found.
    pub findings: Vec<Finding>,
    /// Mutations that were left out, as the time was over.
    pub left_out: usize,
}

impl Results {
    /// Takes what another thread has found.
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

    /// Adds one finding for a message and a stage, whatever there is to say of it.
    pub fn find(&mut self, source: &Source, stage: Stage, what: &[String], bytes: &[u8]) {
        let known = self.findings.iter().any(|f| f.source == *source && f.stage == stage);
        if !what.is_empty() && !known {
            let (source, what, bytes) = (source.clone(), what.join("; "), bytes.to_vec());
            self.findings.push(Finding { source, stage, what, bytes });
        }
    }

    /// Whether everything is as it has to be.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.stage == Stage::Beyond)
    }

    /// For a file.
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
