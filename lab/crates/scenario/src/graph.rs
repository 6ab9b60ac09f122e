//! The session graph: a Markov chain over classes, and expected values that follow from it.

use bywash_units::TimeSpan;

use crate::class::Class;
use crate::distribution::Stream;

/// The session graph of a scenario: the first class of a session, and the classes that may follow
/// each class.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The index of the class of every session's first request.
    pub start: usize,
    /// The possible successors of each class: `next[i]` has the index and the probability of each
    /// class that may follow class `i`. The sum of the probabilities is at most 1; the rest is the
    /// probability that the session ends.
    pub next: Vec<Vec<(usize, f64)>>,
    /// The index of the class whose completed requests are orders.
    pub order: usize,
}

/// The maximum number of requests of a drawn session, whatever the graph is. It only bounds memory,
/// because graphs without an exit are refused when the scenario file is read.
const LONGEST_SESSION: usize = 10_000;

impl Graph {
    /// Draws the classes that one session will visit, beginning with `start`.
    pub fn walk(&self, start: usize, stream: &mut Stream) -> Vec<usize> {
        let mut path = vec![start];
        while path.len() < LONGEST_SESSION {
            let Some(next) = self.step(path[path.len() - 1], stream) else {
                break;
            };
            path.push(next);
        }
        path
    }

    fn step(&self, class: usize, stream: &mut Stream) -> Option<usize> {
        let mut left = stream.unit();
        for &(next, probability) in &self.next[class] {
            left -= probability;
            if left < 0.0 {
                return Some(next);
            }
        }
        None
    }

    /// Returns the expected number of visits to each class in one session: v = e + Pᵀv, solved by
    /// iteration. P has the transition probabilities, and e is 1 for the first class and 0 for the
    /// others. Returns `None` if the iteration does not converge, that is, if sessions never leave
    /// the graph.
    pub fn expected_visits(&self) -> Option<Vec<f64>> {
        let mut visits = vec![0.0; self.next.len()];
        for _ in 0..100_000 {
            let updated = self.visits_after(&visits);
            let change: f64 = updated.iter().zip(&visits).map(|(a, b)| (a - b).abs()).sum();
            visits = updated;
            if change < 1e-12 {
                return Some(visits);
            }
        }
        None
    }

    fn visits_after(&self, visits: &[f64]) -> Vec<f64> {
        let mut updated = vec![0.0; visits.len()];
        updated[self.start] = 1.0;
        for (from, row) in self.next.iter().enumerate() {
            for &(to, probability) in row {
                updated[to] += visits[from] * probability;
            }
        }
        updated
    }

    /// Returns the mean total service time of one session; `None` for a graph that sessions never
    /// leave.
    pub fn work_per_session(&self, classes: &[Class]) -> Option<TimeSpan> {
        let visits = self.expected_visits()?;
        let seconds: f64 = visits
            .iter()
            .zip(classes)
            .map(|(n, class)| n * class.service.mean().as_secs_f64())
            .sum();
        Some(TimeSpan::from_secs_f64(seconds))
    }

    /// Returns, for each class, the expected number of orders of a session from that class on: h =
    /// order + P·h, solved by iteration. P has the transition probabilities, and `order` is 1 for
    /// the class of orders and 0 for the others. Returns `None` for a graph that sessions never
    /// leave.
    pub fn expected_orders(&self) -> Option<Vec<f64>> {
        let own = |class: usize| if class == self.order { 1.0 } else { 0.0 };
        let mut orders = vec![0.0; self.next.len()];
        for _ in 0..100_000 {
            let from = |(class, row): (usize, &Vec<(usize, f64)>)| {
                own(class) + row.iter().map(|(to, p)| p * orders[*to]).sum::<f64>()
            };
            let updated: Vec<f64> = self.next.iter().enumerate().map(from).collect();
            let change: f64 = updated.iter().zip(&orders).map(|(a, b)| (a - b).abs()).sum();
            orders = updated;
            if change < 1e-12 {
                return Some(orders);
            }
        }
        None
    }

    /// Returns the mean number of orders of a session; `None` for a graph that sessions never
    /// leave.
    pub fn orders_per_session(&self) -> Option<f64> {
        self.expected_visits().map(|visits| visits[self.order])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_visits_of_a_loop_are_a_geometric_sum() {
        let graph = Graph { start: 0, next: vec![vec![(0, 0.5), (1, 0.25)], vec![]], order: 1 };
        let visits = graph.expected_visits().unwrap();
        assert!((visits[0] - 2.0).abs() < 1e-9 && (visits[1] - 0.5).abs() < 1e-9, "{visits:?}");
    }

    #[test]
    fn a_graph_without_an_exit_is_noticed() {
        let graph = Graph { start: 0, next: vec![vec![(0, 1.0)]], order: 0 };
        assert_eq!(graph.expected_visits(), None);
    }
}
