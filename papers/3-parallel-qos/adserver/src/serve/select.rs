//! One request's banners, either way.
//!
//! The functions of a request's concepts are run in one place, [`candidates`]: on as many threads as its turn in the pool
//! has.

use bywash_levels::Request;
use serde::Serialize;

use crate::serve::draw::{self, Progress};
use crate::serve::scan::{self, Candidate};
use crate::serve::{Page, RandomStream};
use crate::snapshot::{Concept, Snapshot};
use crate::values::Size;

/// How banners are selected. The distribution is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Selection {
    /// The seed's: each concept scans all contracted banners. What the laboratory measures.
    Scan,
    /// Ours: trees of weights that are kept up to date.
    #[default]
    Wheels,
}

/// What a request wants on its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectionRequest<'a> {
    /// By id, none twice.
    pub(crate) concepts: &'a [Concept],
    /// Any, if none.
    pub(crate) size: Option<Size>,
    /// How many.
    pub(crate) count: usize,
}

/// One request's way of selecting.
#[derive(Debug)]
pub(crate) struct Selector {
    rng: RandomStream,
    /// Requests that the trees left to a roulette of all candidates.
    pub(crate) rescans: u64,
}

impl Selector {
    pub(crate) fn new(rng: RandomStream) -> Self {
        Self { rng, rescans: 0 }
    }

    /// Adds banners to `page`, each with an impression delivered; fewer than wanted if there are no more. A scan goes on
    /// the threads of `turn`, if there is one.
    pub(crate) fn select(
        &mut self,
        snapshot: &Snapshot,
        wanted: SelectionRequest<'_>,
        page: &mut Page,
        turn: Option<&mut Request>,
    ) {
        let left = match &snapshot.trees {
            Some(trees) => draw::choose(snapshot, trees, &wanted, page, &mut self.rng),
            None => Progress::Left(wanted.count),
        };
        if let Progress::Left(count) = left {
            self.rescans += u64::from(snapshot.trees.is_some());
            let candidates = candidates(snapshot, wanted, turn);
            scan::choose(snapshot, candidates, count, page, &mut self.rng);
        }
    }
}

/// The common list of candidates: each concept's, side by side [paper 3.3].
fn candidates(
    snapshot: &Snapshot,
    wanted: SelectionRequest<'_>,
    turn: Option<&mut Request>,
) -> Vec<Candidate> {
    let of = |concept: &Concept| match &snapshot.trees {
        Some(trees) => scan::matching_in_trees(snapshot, trees, concept, wanted.size),
        None => scan::matching(snapshot, concept, wanted.size),
    };
    scan::merge(match turn {
        Some(turn) => turn.map(wanted.concepts, of),
        None => wanted.concepts.iter().map(of).collect(),
    })
}
