//! Our selection: the roulette of the union of concepts, without building it.
//!
//! A draw takes a tree of the requested concepts in proportion to its total, and a banner of that tree in proportion
//! to its weight *w*: a banner on *m* of these trees comes with chance *m·w* / sum. It is accepted with chance 1/*m*,
//! which leaves *w*: exactly the roulette of the common list. Who may not come on the page is rejected, which leaves the
//! others in proportion, as taking him out of the list would.

use std::sync::Arc;

use crate::serve::page::Page;
use crate::serve::{RandomStream, SelectionRequest};
use crate::snapshot::{Banner, Concept, Snapshot, WeightTrees};

/// Draws for one choice, before the rest is left to a scan. With a banner on all of 16 trees, one of 16 draws is
/// accepted: 256 fail once in 15 million choices.
const DRAWS: usize = 256;

/// How far the trees came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The page has all it wanted, or nobody is owed anything.
    Done,
    /// So many choices were not made: too many draws were rejected.
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

/// How many of `concepts` the banner has; both are by id.
fn shared(banner: &Banner, concepts: &[Concept]) -> u64 {
    let has = |concept: &&Concept| banner.concepts.iter().any(|own| own.id == concept.id);
    concepts.iter().filter(has).count() as u64
}
