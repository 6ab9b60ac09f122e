//! Selects banners with trees of weights. The result is that of the roulette over all banners of
//! the requested concepts, but their common list is never built.
//!
//! A draw chooses one tree of the requested concepts in proportion to the tree's total. It then
//! chooses one banner of that tree in proportion to its weight *w*. So a banner that is in *m* of
//! these trees is drawn with a probability proportional to *m·w*. It is accepted with probability
//! 1/*m*, so that its probability is proportional to *w*, as in the roulette over the common list.
//! A banner that must not be added to the page is rejected. The other banners keep their
//! proportions, as if the rejected one were not in the list.

use std::sync::Arc;

use crate::serve::page::Page;
use crate::serve::{RandomStream, SelectionRequest};
use crate::snapshot::{Banner, Concept, Snapshot, WeightTrees};

/// The maximum number of draws for one choice. If all draws are rejected, a scan makes the
/// remaining choices. For example, a banner in 16 trees is accepted in one of 16 draws. Then all
/// 256 draws are rejected in one of 15 million choices.
const DRAWS: usize = 256;

/// The result of selecting banners with trees.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The page has all the banners that it wanted, or no further banner is owed impressions.
    Done,
    /// The number of banners still to choose, because too many draws were rejected.
    Left(usize),
}

/// Adds up to `wanted.count` banners to `page`, and delivers one impression of each.
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
    if rng.below(shared(banner, concepts)) != 0 || !page.accepts(banner) {
        return false;
    }
    let is_delivered = banner.tally.deliver();
    snapshot.update_weight(index);
    if is_delivered {
        page.add(banner);
    }
    is_delivered
}

/// Returns the number of `concepts` that the banner has.
fn shared(banner: &Banner, concepts: &[Concept]) -> u64 {
    let has = |concept: &&Concept| banner.concepts.iter().any(|own| own.id == concept.id);
    concepts.iter().filter(has).count() as u64
}
