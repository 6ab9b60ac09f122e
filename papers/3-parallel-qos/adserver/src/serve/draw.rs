//! Selection by trees of weights: the roulette over the union of the requested concepts, without
//! building the union.
//!
//! A draw chooses one tree of the requested concepts in proportion to its total, and one banner of
//! that tree in proportion to its weight *w*. So a banner that is in *m* of these trees is drawn
//! with probability *m·w* / sum. It is accepted with probability 1/*m*, which leaves *w*: exactly
//! the roulette over the common list. A banner that may not be added to the page is rejected. The
//! others keep their proportions, as if it were not in the list.

use std::sync::Arc;

use crate::serve::page::Page;
use crate::serve::{RandomStream, SelectionRequest};
use crate::snapshot::{Banner, Concept, Snapshot, WeightTrees};

/// The most draws for one choice, before the rest is left to a scan. For a banner in all of 16
/// trees, one of 16 draws is accepted: 256 draws all fail once in 15 million choices.
const DRAWS: usize = 256;

/// The result of selecting by trees.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The page has all the banners that it wanted, or no banner is owed impressions.
    Done,
    /// The number of choices that were not made, because too many draws were rejected.
    Left(usize),
}

/// Adds up to `wanted.count` banners to `page`.
pub(super) fn choose(
    snapshot: &Snapshot,
    trees: &WeightTrees,
    wanted: &SelectionRequest<'_>,
    page: &mut Page,
    rng: &mut RandomStream,
) -> Progress {
    let concepts = wanted.concepts.iter();
    let own: Vec<_> = concepts.flat_map(|concept| trees.of(concept.id, wanted.size)).collect();
    for made in 0..wanted.count {
        if own.iter().all(|tree| tree.total() == 0) {
            return Progress::Done;
        }
        let is_chosen = (0..DRAWS).any(|_| {
            let totals = own.iter().map(|tree| tree.total());
            let mut number = rng.below(totals.clone().sum());
            let tree = own.iter().zip(totals).find(|(_, total)| {
                let is_it = number < *total;
                number = number.wrapping_sub(if is_it { 0 } else { *total });
                is_it
            });
            let index = tree.and_then(|(tree, _)| tree.draw(|end| rng.below(end)));
            index.is_some_and(|index| accept(snapshot, index, wanted.concepts, page, rng))
        });
        if !is_chosen {
            return Progress::Left(wanted.count - made);
        }
    }
    Progress::Done
}

fn accept(
    snapshot: &Snapshot,
    index: usize,
    concepts: &[Concept],
    page: &mut Page,
    rng: &mut RandomStream,
) -> bool {
    let banner: &Arc<Banner> = &snapshot.contracted[index];
    if rng.below(shared(banner, concepts)) != 0 || !page.takes(banner) {
        return false;
    }
    let is_claimed = banner.tally.claim();
    snapshot.update_weight(index);
    if is_claimed {
        page.add(banner);
    }
    is_claimed
}

/// Returns how many of `concepts` the banner has.
fn shared(banner: &Banner, concepts: &[Concept]) -> u64 {
    let has = |concept: &&Concept| banner.concepts.iter().any(|own| own.id == concept.id);
    concepts.iter().filter(has).count() as u64
}
