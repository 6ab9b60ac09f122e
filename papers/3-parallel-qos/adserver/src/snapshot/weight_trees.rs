//! Trees of the weights of banners, which are kept up to date instead of being built for each
//! request.
//!
//! There is one tree for each pair of a concept and a size: a Fenwick tree of the weights of its
//! banners. A change of a weight and a draw each take a number of steps that is logarithmic in the
//! number of banners (P. Fenwick, *A new data structure for cumulative frequency tables*, 1994).
//!
//! Locks: each tree has a mutex, which is held for one change or one draw. A weight is read from
//! its banner's atomics under that lock. Therefore, after two simultaneous deliveries the tree has
//! the later weight.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Banner, Tally};
use crate::ids::ConceptId;
use crate::values::Size;

/// A Fenwick tree: weights whose prefix sums are found in logarithmic time.
#[derive(Debug)]
pub(crate) struct Fenwick {
    weights: Vec<u64>,
    /// The partial sums, with indices from 1. `sums[i]` is the sum of the last weights up to the
    /// i-th. The number of these weights is the lowest set bit of `i`. `sums[0]` is not used.
    sums: Vec<u64>,
    total: u64,
}

impl Fenwick {
    pub(crate) fn new(weights: Vec<u64>) -> Self {
        let mut sums = vec![0; weights.len() + 1];
        for (index, weight) in weights.iter().enumerate() {
            let place = index + 1;
            sums[place] += weight;
            let next = place + lowest_bit(place);
            if next < sums.len() {
                sums[next] += sums[place];
            }
        }
        let total = weights.iter().sum();
        Self { weights, sums, total }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn set(&mut self, index: usize, weight: u64) {
        let old = std::mem::replace(&mut self.weights[index], weight);
        let change = |sum: u64| sum.wrapping_sub(old).wrapping_add(weight);
        self.total = change(self.total);
        let mut place = index + 1;
        while place < self.sums.len() {
            self.sums[place] = change(self.sums[place]);
            place += lowest_bit(place);
        }
    }

    /// Returns the first index at which the sum of all weights up to and including that index
    /// exceeds `number`. There is such an index if `number` is below the total.
    pub(crate) fn find(&self, mut number: u64) -> usize {
        let mut place = 0;
        let mut step = self.weights.len().checked_ilog2().map_or(0, |log| 1 << log);
        while step > 0 {
            let next = place + step;
            if next < self.sums.len() && self.sums[next] <= number {
                number -= self.sums[next];
                place = next;
            }
            step /= 2;
        }
        place
    }
}

fn lowest_bit(place: usize) -> usize {
    place & place.wrapping_neg()
}

/// The banners of one concept and one size, with a tree of their weights.
#[derive(Debug)]
pub(crate) struct WeightTree {
    banners: Vec<usize>,
    tree: Mutex<Fenwick>,
    /// A copy of the tree's total, so that a tree can be chosen without locking all of them.
    total: AtomicU64,
}

impl WeightTree {
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Returns the banners of the tree, as indices into the snapshot's `contracted` banners.
    pub(crate) fn banners(&self) -> &[usize] {
        &self.banners
    }

    /// Draws a banner in proportion to its weight. `below` must return a random number below its
    /// argument. Returns `None` if all weights of the tree have become zero.
    pub(crate) fn draw(&self, below: impl FnOnce(u64) -> u64) -> Option<usize> {
        let tree = self.lock();
        let total = tree.total();
        (total > 0).then(|| self.banners[tree.find(below(total))])
    }

    fn update(&self, place: usize, tally: &Tally) {
        let mut tree = self.lock();
        tree.set(place, tally.weight());
        self.total.store(tree.total(), Relaxed);
    }

    /// Locks the tree. A poisoned lock is accepted, because every change is complete before a panic
    /// can occur.
    fn lock(&self) -> MutexGuard<'_, Fenwick> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All trees of weights of a snapshot.
#[derive(Debug)]
pub(crate) struct WeightTrees {
    trees: BTreeMap<(ConceptId, Size), Arc<WeightTree>>,
    /// The trees that contain each contracted banner, each with the banner's index in that tree.
    /// Indexed by the banner's index in `contracted`.
    places: Vec<Vec<(Arc<WeightTree>, usize)>>,
}

impl WeightTrees {
    pub(crate) fn new(contracted: &[Arc<Banner>]) -> Self {
        let mut members: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, banner) in contracted.iter().enumerate() {
            for concept in &banner.concepts {
                members.entry((concept.id, banner.size)).or_default().push(index);
            }
        }
        let mut places = vec![Vec::new(); contracted.len()];
        let mut trees = BTreeMap::new();
        for (key, banners) in members {
            let weights = banners.iter().map(|index| contracted[*index].tally.weight()).collect();
            let tree = Fenwick::new(weights);
            let total = AtomicU64::new(tree.total());
            let weight_tree = Arc::new(WeightTree { banners, tree: Mutex::new(tree), total });
            for (place, index) in weight_tree.banners.iter().enumerate() {
                places[*index].push((Arc::clone(&weight_tree), place));
            }
            trees.insert(key, weight_tree);
        }
        Self { trees, places }
    }

    /// Returns the trees of a concept: the one of `size`, or those of all sizes if `size` is
    /// `None`.
    pub(crate) fn of(
        &self,
        concept: ConceptId,
        size: Option<Size>,
    ) -> impl Iterator<Item = &Arc<WeightTree>> {
        let from = self.trees.range((concept, Size::SMALLEST)..);
        let own = from.take_while(move |((id, _), _)| *id == concept);
        own.filter(move |((_, own), _)| size.is_none_or(|size| size == *own)).map(|(_, tree)| tree)
    }

    pub(crate) fn update(&self, index: usize, tally: &Tally) {
        for (tree, place) in &self.places[index] {
            tree.update(*place, tally);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_finds_what_adding_up_would() {
        for length in [1, 2, 3, 7, 8, 9, 100] {
            let mut weights: Vec<u64> = (0..length).map(|index| index * 37 % 11).collect();
            let mut tree = Fenwick::new(vec![5; weights.len()]);
            for (index, weight) in weights.iter().enumerate() {
                tree.set(index, *weight);
            }
            for round in 0..3 {
                assert_eq!(tree.total(), weights.iter().sum::<u64>());
                for number in 0..tree.total() {
                    let mut sum = 0;
                    let wanted = weights.iter().position(|weight| {
                        sum += weight;
                        sum > number
                    });
                    assert_eq!(Some(tree.find(number)), wanted, "{number} of {weights:?}");
                }
                let last = weights.len() - 1;
                weights[last] = round;
                tree.set(last, round);
            }
        }
    }
}
