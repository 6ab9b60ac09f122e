//! The seed's selection: every contracted banner is looked at for each concept of the request.
//!
//! [`matching`] is the seed's unit of parallel work (lines 3 to 5 of its Figure 4): it reads a snapshot that does not
//! change and counts that are atomics, and depends on no other concept. As in the seed's server keywords are compared
//! as text; to compare numbers would be faster, and would not be what was measured. The common list is put together
//! afterwards ([`merge`]): the seed's threads share one, which they have to lock.

use crate::serve::RandomStream;
use crate::serve::page::Page;
use crate::serve::roulette::Roulette;
use crate::snapshot::{Banner, Concept, Snapshot, WeightTrees};
use crate::values::Size;

/// A banner that a request may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// In the snapshot's contracted banners.
    pub(crate) index: usize,
    /// Impressions owed when it was looked at.
    pub(crate) weight: u64,
}

/// The banners that have `concept`, fit `size` and may be delivered now, by index.
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

/// The same, where trees are kept: their banners are those that fit.
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
    /// `None`: it may not be delivered now.
    fn of(index: usize, banner: &Banner) -> Option<Self> {
        let weight = banner.tally.weight();
        (weight > 0).then_some(Self { index, weight })
    }
}

/// The common list: every candidate once, by index. Of two weights of one banner, between which it was delivered, either
/// was right.
pub(crate) fn merge(lists: Vec<Vec<Candidate>>) -> Vec<Candidate> {
    let mut common: Vec<_> = lists.into_iter().flatten().collect();
    common.sort_unstable();
    common.dedup_by_key(|candidate| candidate.index);
    common
}

/// Plays the roulette with the candidates until `page` has `count` more banners or nobody is left who may come on it.
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
        // Somebody else may have had its last impression meanwhile.
        if banner.tally.claim() {
            snapshot.update_weight(index);
            page.add(banner);
        }
    }
}
