//! The paper's selection: for each concept of a request, a scan of all contracted banners.
//!
//! [`matching`] is the paper's unit of parallel work (lines 3 to 5 of its Figure 4). It reads an
//! immutable snapshot and atomic counts, and depends on no other concept. Keywords are compared as
//! text, as in the paper's server. Comparing ids would be faster, but would not be the work that
//! the paper measured. The lists of all concepts are merged afterwards ([`merge`]). In the paper,
//! the threads share one list, which they have to lock.

use crate::serve::RandomStream;
use crate::serve::page::Page;
use crate::serve::roulette::Roulette;
use crate::snapshot::{Banner, Concept, Snapshot, WeightTrees};
use crate::values::Size;

/// A banner that may be delivered to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// The index of the banner in the snapshot's `contracted` banners.
    pub(crate) index: usize,
    /// The number of impressions that the banner was owed when it was examined.
    pub(crate) weight: u64,
}

/// Scans all contracted banners. Returns those that have `concept`, fit `size` and may be delivered
/// now, sorted by index.
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

/// Returns the candidates that [`matching`] returns, possibly in another order. It reads them from
/// the trees instead of scanning.
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
    /// Returns the banner as a candidate with its present weight, or `None` if the banner may not
    /// be delivered now.
    fn of(index: usize, banner: &Banner) -> Option<Self> {
        let weight = banner.tally.weight();
        (weight > 0).then_some(Self { index, weight })
    }
}

/// Merges the lists into one that contains every banner once, sorted by index. If an impression of
/// a banner was delivered between two scans, the lists have two weights for the banner. Either may
/// be used.
pub(crate) fn merge(lists: Vec<Vec<Candidate>>) -> Vec<Candidate> {
    let mut common: Vec<_> = lists.into_iter().flatten().collect();
    common.sort_unstable();
    common.dedup_by_key(|candidate| candidate.index);
    common
}

/// Chooses candidates by roulette until `page` has `count` more banners, or until no candidate may
/// be added. Delivers one impression of each chosen banner.
pub(super) fn choose(
    snapshot: &Snapshot,
    mut candidates: Vec<Candidate>,
    count: usize,
    page: &mut Page,
    rng: &mut RandomStream,
) {
    let wanted = page.banners.len() + count;
    while page.banners.len() < wanted {
        candidates.retain(|candidate| page.accepts(&snapshot.contracted[candidate.index]));
        let roulette = Roulette::new(candidates.iter().map(|candidate| candidate.weight));
        if roulette.total() == 0 {
            return;
        }
        let entry = roulette.entry(rng.below(roulette.total()));
        let index = candidates.remove(entry).index;
        let banner = &snapshot.contracted[index];
        // Another request may have taken the last impression in the meantime. Then this banner is
        // not added.
        if banner.tally.deliver() {
            snapshot.update_weight(index);
            page.add(banner);
        }
    }
}
