//! The Gittins index of a session graph: the expected revenue per second of remaining work of a
//! session that continues for exactly as long as that pays best.
//!
//! Source: `policies.md` §1, «value index»: `ν_i = max R_A(i)/W_A(i)` over all sets `A ∋ i` of
//! classes. The session starts at i and stops at the first class outside A. R is its expected
//! revenue and W its expected work. Indices are computed largest first (Varaiya, Walrand and
//! Buyukkoc 1985): the state whose own ratio is largest has that ratio as its index. That state is
//! then eliminated (Sonin 2008): each state that leads to it takes over its revenue, work and
//! successors. The next largest ratio is then found. The whole computation is O(n³). A loop from a
//! state to itself multiplies its revenue and its work alike, so it does not change the ratio.

use alloc::vec::Vec;

/// A session graph as a Markov chain, with the revenue and the work of each state.
#[derive(Clone, Debug)]
pub struct Chain {
    states: usize,
    /// The expected revenue of one visit, by state.
    revenue: Vec<f64>,
    /// The expected work of one visit in seconds, by state.
    work: Vec<f64>,
    /// The probability that state j follows state i: a matrix, row by row.
    next: Vec<f64>,
}

/// The minimum work of a visit, in seconds.
const LEAST_WORK: f64 = 1e-6;
/// The maximum probability that a state follows itself. A state that sessions practically never
/// leave would have infinite totals.
const MOST_LOOP: f64 = 0.999_999;

impl Chain {
    /// Creates a chain of `states` states that lead nowhere and bring no revenue.
    pub fn new(states: usize) -> Self {
        Self {
            states,
            revenue: alloc::vec![0.0; states],
            work: alloc::vec![LEAST_WORK; states],
            next: alloc::vec![0.0; states * states],
        }
    }

    /// Sets the `revenue` of one visit to `state`, and its `work` in seconds.
    pub fn visit(&mut self, state: usize, revenue: f64, work: f64) {
        self.revenue[state] = revenue;
        self.work[state] = work.max(LEAST_WORK);
    }

    /// Sets the probability that state `to` follows state `from`.
    pub fn leads(&mut self, from: usize, to: usize, probability: f64) {
        self.next[from * self.states + to] = probability;
    }

    /// Returns the index of every state, in revenue per second of work.
    pub fn indices(mut self) -> Vec<f64> {
        let mut index = alloc::vec![0.0; self.states];
        let mut left: Vec<usize> = (0..self.states).collect();
        while let Some(position) = self.largest(&left) {
            let state = left.swap_remove(position);
            index[state] = self.ratio(state);
            self.eliminate(state, &left);
        }
        index
    }

    /// Returns the expected revenue from every state on, if no session is stopped: h = r + P·h.
    pub fn totals(mut self) -> Vec<f64> {
        for state in 0..self.states {
            let others: Vec<usize> = (0..self.states).filter(|other| *other != state).collect();
            self.eliminate(state, &others);
            for other in others {
                self.leads(other, state, 0.0);
            }
        }
        let total = |state: usize| self.revenue[state] / self.leaves(state);
        (0..self.states).map(total).collect()
    }

    /// Returns the probability that another state, or none, follows this one.
    fn leaves(&self, state: usize) -> f64 {
        1.0 - self.next[state * self.states + state].min(MOST_LOOP)
    }

    fn ratio(&self, state: usize) -> f64 {
        self.revenue[state] / self.work[state]
    }

    fn largest(&self, left: &[usize]) -> Option<usize> {
        let ratios =
            left.iter().enumerate().map(|(position, state)| (position, self.ratio(*state)));
        ratios.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(position, _)| position)
    }

    /// Eliminates a state: the states in `left` take over its revenue, its work and its successors.
    fn eliminate(&mut self, state: usize, left: &[usize]) {
        let row = state * self.states;
        let leaves = self.leaves(state);
        for &other in left {
            let through = self.next[other * self.states + state] / leaves;
            if through > 0.0 {
                self.revenue[other] += through * self.revenue[state];
                self.work[other] += through * self.work[state];
                for &target in left {
                    self.next[other * self.states + target] += through * self.next[row + target];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the shop of paper 1, with transition probabilities that give the paper's utilities,
    /// and with unequal costs.
    fn paper_1() -> Chain {
        let work = [0.125, 0.2, 0.4, 0.25, 0.15, 0.15, 0.3, 0.3];
        let mut chain = Chain::new(8);
        for (state, work) in work.into_iter().enumerate() {
            chain.visit(state, if state == 7 { 1.0 } else { 0.0 }, work);
        }
        for (from, to, probability) in [
            (0, 1, 0.41),
            (0, 2, 0.50),
            (1, 1, 0.16),
            (1, 2, 0.01),
            (1, 3, 0.25),
            (2, 1, 0.02),
            (2, 2, 0.08),
            (2, 3, 0.45),
            (3, 1, 0.30),
            (3, 2, 0.25),
            (3, 4, 0.0158),
            (4, 5, 0.9),
            (5, 6, 0.9),
            (6, 7, 0.9),
        ] {
            chain.leads(from, to, probability);
        }
        chain
    }

    /// Computes the index of every state by its definition, as a reference. The function tries all
    /// 2ⁿ⁻¹ sets around each state, each by iteration.
    fn by_definition(chain: &Chain) -> Vec<f64> {
        let n = chain.states;
        let mut best = alloc::vec![0.0_f64; n];
        for set in 1_usize..1 << n {
            let inside = |state: usize| set & (1 << state) != 0;
            let (mut revenue, mut work) = (alloc::vec![0.0; n], alloc::vec![0.0; n]);
            for _ in 0..400 {
                for i in (0..n).filter(|i| inside(*i)) {
                    let follows = |of: &[f64]| {
                        (0..n)
                            .filter(|j| inside(*j))
                            .map(|j| chain.next[i * n + j] * of[j])
                            .sum::<f64>()
                    };
                    (revenue[i], work[i]) =
                        (chain.revenue[i] + follows(&revenue), chain.work[i] + follows(&work));
                }
            }
            for i in (0..n).filter(|i| inside(*i)) {
                best[i] = best[i].max(revenue[i] / work[i]);
            }
        }
        best
    }

    #[test]
    fn the_index_is_the_best_ratio_over_all_sets_that_hold_the_state() {
        let expected = by_definition(&paper_1());
        for (state, (index, expected)) in paper_1().indices().iter().zip(&expected).enumerate() {
            assert!(
                (index / expected - 1.0).abs() < 1e-9,
                "state {state}: {index}, not {expected}"
            );
        }
    }

    #[test]
    fn in_the_papers_shop_going_on_is_worth_more_than_beginning() {
        let index = paper_1().indices();
        let thousandths: Vec<f64> =
            index.iter().map(|index| libm::round(index * 1e4) / 10.0).collect();
        assert!(index.windows(2).skip(2).all(|pair| pair[0] < pair[1]), "{thousandths:?}");
        assert!(index[..3].iter().all(|browsing| *browsing < index[3] / 2.0), "{thousandths:?}");
    }

    #[test]
    fn random_chains_agree_with_the_definition() {
        let mut seed = 7_u64;
        let mut unit = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (seed >> 33) as f64 / f64::from(1_u32 << 31)
        };
        for case in 0..40 {
            let n = 2 + case % 4;
            let mut chain = Chain::new(n);
            for i in 0..n {
                chain.visit(i, if unit() < 0.5 { unit() } else { 0.0 }, 0.05 + unit());
                for j in 0..n {
                    chain.leads(i, j, 0.9 * unit() / n as f64);
                }
            }
            let expected = by_definition(&chain);
            for (index, expected) in chain.indices().iter().zip(&expected) {
                assert!((index - expected).abs() < 1e-9, "case {case}: {index}, not {expected}");
            }
        }
    }

    #[test]
    fn what_a_session_brings_in_all_is_what_it_brings_step_by_step() {
        let chain = paper_1();
        let mut expected = alloc::vec![0.0; 8];
        for _ in 0..1000 {
            for state in 0..8 {
                let follows = (0..8).map(|to| chain.next[state * 8 + to] * expected[to]);
                expected[state] = chain.revenue[state] + follows.sum::<f64>();
            }
        }
        for (total, expected) in paper_1().totals().iter().zip(&expected) {
            assert!((total / expected - 1.0).abs() < 1e-9, "{total}, not {expected}");
        }
    }

    #[test]
    fn a_state_that_only_leads_to_itself_has_the_ratio_of_one_visit() {
        let mut chain = Chain::new(1);
        chain.visit(0, 2.0, 4.0);
        chain.leads(0, 0, 1.0);
        assert!((chain.indices()[0] - 0.5).abs() < 1e-12);
    }
}
