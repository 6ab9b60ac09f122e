//! The transitions of sessions between pages, and the worth of a page: the probability that a
//! session on this page ends in an order.
//!
//! Pages are the states of a Markov chain; orders and exits absorb (`policies.md` §1). With q(i)
//! the share of an order's requests that succeed (0 for other pages), the worth u(i) of page i is
//!
//! > u(i) = q(i) + (1 − q(i)) · Σ P(i, j) · u(j)
//!
//! The equation is solved by substitution (Gauss and Seidel). With exits, some row sums are less
//! than one, so the iteration converges.

use bywash_discover::MOST_COLUMNS;

/// The number of page numbers. Number 0 stands for all pages without a number of their own.
pub(crate) const PAGES: usize = MOST_COLUMNS + 1;

/// The bound for convergence. The iteration stops when no worth changes by more than this.
const CONVERGENCE: f64 = 1e-9;
const MAX_ITERATIONS: usize = 2_000;

/// The counts of transitions between pages.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    steps: Vec<u64>,
    pub(crate) entries: Vec<u64>,
    pub(crate) exits: Vec<u64>,
}

impl Graph {
    /// Creates a graph of `pages` pages without transitions.
    pub(crate) fn new(pages: usize) -> Self {
        Self { steps: vec![0; pages * pages], entries: vec![0; pages], exits: vec![0; pages] }
    }

    fn pages(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn step(&mut self, from: usize, to: usize) {
        self.add(from, to, 1);
    }

    fn add(&mut self, from: usize, to: usize, times: u64) {
        let pages = self.pages();
        self.steps[from * pages + to] += times;
    }

    /// Returns the number of transitions from one page to another.
    pub(crate) fn steps(&self, from: usize, to: usize) -> u64 {
        self.steps[from * self.pages() + to]
    }

    /// Returns the number of transitions from a page, including exits from the site.
    pub(crate) fn leaves(&self, from: usize) -> u64 {
        let pages = self.pages();
        self.steps[from * pages..(from + 1) * pages].iter().sum::<u64>() + self.exits[from]
    }

    /// Adds the counts of page `from` to page `into`, and clears those of `from`.
    pub(crate) fn fold(&mut self, from: usize, into: usize) {
        let pages = self.pages();
        for other in 0..pages {
            let out = std::mem::take(&mut self.steps[from * pages + other]);
            self.add(into, other, out);
        }
        for other in 0..pages {
            let come = std::mem::take(&mut self.steps[other * pages + from]);
            self.add(other, into, come);
        }
        for counts in [&mut self.entries, &mut self.exits] {
            let was = std::mem::take(&mut counts[from]);
            counts[into] += was;
        }
    }

    /// Merges pages into groups. `group` maps a page to its group; pages that it maps to `None` are
    /// left out.
    pub(crate) fn grouped(&self, groups: usize, group: impl Fn(usize) -> Option<usize>) -> Self {
        let mut grouped = Self::new(groups);
        for from in 0..self.pages() {
            let Some(own) = group(from) else { continue };
            grouped.entries[own] += self.entries[from];
            grouped.exits[own] += self.exits[from];
            for to in 0..self.pages() {
                if let Some(other) = group(to) {
                    grouped.add(own, other, self.steps(from, to));
                }
            }
        }
        grouped
    }

    /// Returns the worth u of each page, given the success rate q of each page.
    pub(crate) fn worth(&self, success: &[f64]) -> Vec<f64> {
        let pages = self.pages();
        let mut worth = success.to_vec();
        for _ in 0..MAX_ITERATIONS {
            let mut moved = 0.0_f64;
            for from in 0..pages {
                let leaves = self.leaves(from);
                if leaves == 0 {
                    continue;
                }
                let row = &self.steps[from * pages..(from + 1) * pages];
                let later: f64 = row.iter().zip(&worth).map(|(n, u)| *n as f64 * u).sum();
                let now = success[from] + (1.0 - success[from]) * later / leaves as f64;
                moved = moved.max((now - worth[from]).abs());
                worth[from] = now;
            }
            if moved < CONVERGENCE {
                break;
            }
        }
        worth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the transition table of paper 1, with 10,000 transitions from each page. The pages:
    /// main, browse, search, details, login, shipping, payment, confirm.
    fn seed() -> Graph {
        let mut graph = Graph::new(8);
        let table: [&[(usize, u64)]; 8] = [
            &[(1, 4100), (2, 5000)],
            &[(1, 1600), (2, 100), (3, 2500)],
            &[(1, 200), (2, 800), (3, 4500)],
            &[(1, 3000), (2, 2500), (4, 158)],
            &[(5, 9000)],
            &[(6, 9000)],
            &[(7, 9000)],
            &[],
        ];
        for (from, row) in table.iter().enumerate() {
            row.iter().for_each(|(to, times)| graph.add(from, *to, *times));
            graph.exits[from] = 10_000 - row.iter().map(|(_, times)| times).sum::<u64>();
        }
        graph
    }

    const ORDER: [f64; 8] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];

    #[test]
    fn the_utilities_of_the_seed_come_out() {
        let utilities = [27.0, 22.0, 36.0, 73.0, 3650.0, 4050.0, 4500.0, 5000.0];
        for (worth, seed) in seed().worth(&ORDER).iter().zip(utilities) {
            assert!((5000.0 * worth / seed - 1.0).abs() < 0.02, "{} for {seed}", 5000.0 * worth);
        }
    }

    #[test]
    fn an_order_that_fails_may_be_tried_again() {
        let mut graph = Graph::new(1);
        graph.add(0, 0, 1);
        graph.exits[0] = 1;
        let worth = graph.worth(&[0.5]);
        assert!((worth[0] - 2.0 / 3.0).abs() < 1e-6, "{worth:?}");
    }

    #[test]
    fn a_walk_without_exits_ends_and_is_worth_no_more_than_an_order() {
        let mut graph = Graph::new(3);
        graph.add(0, 1, 5);
        graph.add(1, 0, 5);
        graph.add(2, 2, 1);
        assert_eq!(graph.worth(&[0.0; 3]), [0.0; 3]);
        assert!(graph.worth(&[0.0, 1.0, 0.0]).iter().all(|u| (0.0..=1.0).contains(u)));
    }

    #[test]
    fn pages_that_are_one_have_the_steps_of_both() {
        let mut graph = seed();
        graph.entries[0] = 3;
        let all: u64 = (0..8).map(|page| graph.leaves(page)).sum();
        graph.fold(1, 2);
        assert_eq!((0..8).map(|page| graph.leaves(page)).sum::<u64>(), all);
        assert_eq!((graph.leaves(1), graph.steps(0, 2), graph.steps(2, 2)), (0, 9100, 2700));
        let grouped = graph.grouped(2, |page| (page != 7).then_some(usize::from(page > 3)));
        assert_eq!((grouped.steps(0, 1), grouped.steps(1, 0), grouped.entries[0]), (158, 0, 3));
    }
}
