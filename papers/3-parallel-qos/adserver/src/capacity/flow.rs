//! Computes the maximum flow through a network with E. Dinic's algorithm (1970). Each phase fills
//! all shortest paths from the source to the sink.

use std::collections::VecDeque;

/// A node of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(usize);

/// A flow network: nodes, and edges with their residual capacities.
#[derive(Debug)]
pub(super) struct Network {
    /// The numbers of the edges that leave each node. The reverse of an edge has the edge's number
    /// with the last bit flipped.
    edges_of: Vec<Vec<usize>>,
    /// The node to which each edge leads, indexed by the number of the edge.
    ends: Vec<usize>,
    /// The residual capacity of each edge, indexed by the number of the edge.
    left: Vec<u64>,
}

impl Network {
    pub(super) const SOURCE: Node = Node(0);
    pub(super) const SINK: Node = Node(1);

    pub(super) fn new() -> Self {
        Self { edges_of: vec![Vec::new(); 2], ends: Vec::new(), left: Vec::new() }
    }

    pub(super) fn node(&mut self) -> Node {
        self.edges_of.push(Vec::new());
        Node(self.edges_of.len() - 1)
    }

    pub(super) fn edge(&mut self, from: Node, to: Node, capacity: u64) {
        for (from, to, capacity) in [(from, to, capacity), (to, from, 0)] {
            self.edges_of[from.0].push(self.ends.len());
            self.ends.push(to.0);
            self.left.push(capacity);
        }
    }

    /// Increases the flow to its maximum, and returns the increase. The flow of earlier calls
    /// stays, possibly on other paths.
    pub(super) fn fill(&mut self) -> u64 {
        let mut gained = 0;
        while let Some(distances) = self.distances() {
            let mut next = vec![0; self.edges_of.len()];
            loop {
                let more = self.push(&distances, &mut next);
                if more == 0 {
                    break;
                }
                gained += more;
            }
        }
        gained
    }

    /// Returns the distance of every node from the source, as the number of edges with residual
    /// capacity on the way. Returns `None` if the sink cannot be reached.
    fn distances(&self) -> Option<Vec<usize>> {
        let mut distances = vec![usize::MAX; self.edges_of.len()];
        distances[Self::SOURCE.0] = 0;
        let mut reached = VecDeque::from([Self::SOURCE.0]);
        while let Some(node) = reached.pop_front() {
            for edge in &self.edges_of[node] {
                let end = self.ends[*edge];
                if self.left[*edge] > 0 && distances[end] == usize::MAX {
                    distances[end] = distances[node] + 1;
                    reached.push_back(end);
                }
            }
        }
        (distances[Self::SINK.0] != usize::MAX).then_some(distances)
    }

    /// Adds flow along one path on which each edge leads one step further from the source. Returns
    /// the added flow, which is zero if there is no such path. `next` is the first edge of each
    /// node that is not known to be a dead end.
    fn push(&mut self, distances: &[usize], next: &mut [usize]) -> u64 {
        let mut path: Vec<usize> = Vec::new();
        loop {
            let node = path.last().map_or(Self::SOURCE.0, |edge| self.ends[*edge]);
            if node == Self::SINK.0 {
                break;
            }
            let onward = |edge: usize| {
                self.left[edge] > 0 && distances[self.ends[edge]] == distances[node] + 1
            };
            let edges = &self.edges_of[node];
            while next[node] < edges.len() && !onward(edges[next[node]]) {
                next[node] += 1;
            }
            match (edges.get(next[node]), path.is_empty()) {
                (Some(edge), _) => path.push(*edge),
                (None, true) => return 0,
                (None, false) => {
                    path.pop();
                    let back = path.last().map_or(Self::SOURCE.0, |edge| self.ends[*edge]);
                    next[back] += 1;
                }
            }
        }
        let flow = path.iter().map(|edge| self.left[*edge]).min().unwrap_or(0);
        for edge in path {
            self.left[edge] -= flow;
            self.left[edge ^ 1] += flow;
        }
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flows_is_what_the_narrowest_cut_lets_through() {
        let mut network = Network::new();
        let [a, b, c, d] = [(); 4].map(|()| network.node());
        for (from, to, capacity) in [
            (Network::SOURCE, a, 16),
            (Network::SOURCE, b, 13),
            (a, c, 12),
            (b, a, 4),
            (c, b, 9),
            (b, d, 14),
            (d, c, 7),
            (c, Network::SINK, 20),
            (d, Network::SINK, 4),
        ] {
            network.edge(from, to, capacity);
        }
        assert_eq!(network.fill(), 23);
        assert_eq!(network.fill(), 0);
    }

    #[test]
    fn what_flowed_first_makes_room_on_another_way() {
        let mut network = Network::new();
        let [first, second, wide, narrow] = [(); 4].map(|()| network.node());
        network.edge(Network::SOURCE, first, 5);
        network.edge(first, narrow, 5);
        network.edge(first, wide, 5);
        network.edge(narrow, Network::SINK, 5);
        network.edge(wide, Network::SINK, 5);
        assert_eq!(network.fill(), 5);
        network.edge(Network::SOURCE, second, 9);
        network.edge(second, narrow, 9);
        assert_eq!(network.fill(), 5);
    }
}
