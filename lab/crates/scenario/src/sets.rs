//! Sets of permanent clients: a closed loop.
//!
//! Each client of a set runs one session after another, pauses between requests and between
//! sessions, and never has two requests at the same time. A site that answers sooner therefore
//! receives more requests. The result is the work that a set completes in a given time. A set may
//! have its own patience, and may be excluded from the counts: paper 4 observes clients that stay
//! while others cancel [paper 4.12].

use serde::Deserialize;

use crate::distribution::Distribution;
use crate::lines::Lines;
use crate::problems::Problems;

/// The maximum number of clients of a set. For larger crowds, use arriving visitors (an open loop).
const MOST: u32 = 100_000;

/// A set of permanent clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSet {
    /// The name of the set.
    pub name: String,
    /// The number of clients in the set.
    pub clients: u32,
    /// The time that the clients wait for any answer; `None` for `client.patience`.
    pub patience: Option<Distribution>,
    /// Whether the requests of the set's clients are counted in the result.
    pub counted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    name: String,
    clients: u32,
    #[serde(default)]
    patience: Option<Distribution>,
    #[serde(default = "yes")]
    counted: bool,
}

const fn yes() -> bool {
    true
}

pub(crate) fn resolve(
    raw: Vec<RawSpec>,
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> Vec<ClientSet> {
    let mut sets = Vec::new();
    for (i, set) in raw.into_iter().enumerate() {
        let line = lines.nth("set", i);
        let many = (1..=MOST).contains(&set.clients);
        let why = format!("clients of set `{}` must be 1 to {MOST}", set.name);
        problems.at(line).require(many, why);
        let is_new = sets.iter().all(|other: &ClientSet| other.name != set.name);
        problems.at(line).require(is_new, format!("set `{}` is defined twice", set.name));
        let RawSpec { name, clients, patience, counted } = set;
        sets.push(ClientSet { name, clients, patience, counted });
    }
    let some = sets.is_empty() || sets.iter().any(|set| set.counted);
    problems.at(lines.nth("set", 0)).require(some, "at least one set needs counted = true");
    sets
}
