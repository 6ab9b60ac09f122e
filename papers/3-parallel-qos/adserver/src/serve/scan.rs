//! The paper's selection: for each concept of a request, a scan of all contracted banners.
//!
//! [`matching`] is the paper's unit of parallel work (lines 3 to 5 of its Figure 4). It reads a
//! snapshot that never changes and counts that are atomics, and depends on no other concept.
//! Keywords are compared as text, as in the paper's server. Comparing numbers would be faster, but
//! it would not be the work that the paper measured. The common list is built afterwards
//! ([`merge`]). The paper's threads share one list, which they have to lock.

use crate::serve::RandomStream;
use crate::serve::page::Page;
use crate::serve::roulette::Roulette;
use crate::snapshot::{Banner, Concept, Snapshot, WeightTrees};
use crate::values::Size;

/// A banner that the request may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// The index into the contracted banners of the snapshot.
    pub(crate) index: usize,
    /// Impressions that were owed when the banner was examined.
    pub(crate) weight: u64,
}

/// Returns the banners that have `concept`, fit `size` and may be delivered now, in order of index.
pub(crate) fn matching(
    snapshot: &Snapshot,
    concept: &Concept,
    size: Option<Size>,
) -> Vec<Candidate> {
    let wanted = concept.keyword.as_str();
    let banners = snapshot.contracted.iter().enumerate();
    let fitting = banners.filter(|(_, banner)| {
        size.is_none_or(|size| size == banner.size)
            && banner.concepts.iter().any(|own| own.keyword.as_str() == wanted)
    });
    fitting.filter_map(|(index, banner)| Candidate::of(index, banner)).collect()
}

/// Returns the same banners from the trees, which hold exactly those that have the concept and fit
/// the size. The order may differ.
pub(super) fn matching_in_trees(
    snapshot: &Snapshot,
    trees: &WeightTrees,
    concept: &Concept,
    size: Option<Size>,
) -> Vec<Candidate> {
    let indices = trees.of(concept.id, size).flat_map(|tree| tree.banners());
    indices.filter_map(|index| Candidate::of(*index, &snapshot.contracted[*index])).collect()
}

impl Candidate {
    /// Returns a candidate, or `None` if the banner may not be delivered now.
    fn of(index: usize, banner: &Banner) -> Option<Self> {
        let weight = banner.tally.weight();
        (weight > 0).then_some(Self { index, weight })
    }
}

/// Merges the lists into a common one that contains every candidate once, in order of index. A
/// banner that was delivered between two scans has two weights. Either is right.
pub(crate) fn merge(lists: Vec<Vec<Candidate>>) -> Vec<Candidate> {
    let mut common: Vec<_> = lists.into_iter().flatten().collect();
    common.sort_unstable();
    common.dedup_by_key(|candidate| candidate.index);
    common
}

/// Chooses candidates by roulette until `page` has `count` more banners, or until no candidate is
/// left that may be added.
pub(super) fn choose(
    snapshot: &Snapshot,
    mut candidates: Vec<Candidate>,
    count: usize,
    page: &mut Page,
    rng: &mut RandomStream,
) {
    let wanted = page.banners.len() + count;
    while page.banners.len() < wanted {
        candidates.retain(|candidate| page.takes(&snapshot.contracted[candidate.index]));
        let roulette = Roulette::new(candidates.iter().map(|candidate| candidate.weight));
        if roulette.total() == 0 {
            return;
        }
        let entry = roulette.entry(rng.below(roulette.total()));
        let index = candidates.remove(entry).index;
        let banner = &snapshot.contracted[index];
        // Another request may have taken the last impression in the meantime.
        if banner.tally.claim() {
            snapshot.update_weight(index);
            page.add(banner);
        }
    }
}
