//! Selects the banners of one request, by scan or by trees.
//!
//! [`candidates`] is the one place that searches the concepts of a request in parallel. It uses as
//! many threads as the request has in the pool.

use bywash_levels::Request;
use serde::Serialize;

use crate::serve::draw::{self, Progress};
use crate::serve::scan::{self, Candidate};
use crate::serve::{Page, RandomStream};
use crate::snapshot::{Concept, Snapshot};
use crate::values::Size;

/// A method of selecting banners. All methods select with the same probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Selection {
    /// The paper's method: for each concept, a scan of all contracted banners. The laboratory
    /// measures this method.
    Scan,
    /// Draws from trees of weights that are kept up to date.
    #[default]
    Wheels,
}

/// The banners that a page wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectionRequest<'a> {
    /// The requested concepts, sorted by id and without duplicates.
    pub(crate) concepts: &'a [Concept],
    /// The size of the banners. `None` accepts any size.
    pub(crate) size: Option<Size>,
    /// The number of banners that the page wants.
    pub(crate) count: usize,
}

/// The random numbers and the counter for the selections of one request.
#[derive(Debug)]
pub(crate) struct Selector {
    rng: RandomStream,
    /// The number of selections that a scan had to complete. A selection draws banners at random,
    /// and rejects those that the page cannot show. After too many rejected draws for one banner, a
    /// scan chooses the remaining banners.
    pub(crate) rescans: u64,
}

impl Selector {
    pub(crate) fn new(rng: RandomStream) -> Self {
        Self { rng, rescans: 0 }
    }

    /// Selects banners for `page`, and delivers one impression of each. If too few banners may be
    /// delivered, it adds fewer than wanted. A scan uses the threads of `turn`, or one thread if
    /// `turn` is `None`.
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

/// Returns the merged list of candidates of all requested concepts. The concepts are searched in
/// parallel [paper 3.3].
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
