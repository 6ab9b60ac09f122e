//! Counts of other gateways in front of the same application.

use crate::request::{ClassId, Signals};
use crate::value::graph::{Counts, Graph};
use crate::value::lift::Lift;

/// The counts of the other gateways in front of the same application. They count like own ones when
/// values are published, and are not kept across a restart.
#[derive(Clone, Debug)]
pub struct OtherCounts {
    pub(super) graph: Graph,
    pub(super) lift: Lift,
}

impl OtherCounts {
    /// Creates empty counts of `classes` classes.
    pub fn new(classes: usize) -> Self {
        Self { graph: Graph::new(classes), lift: Lift::NONE }
    }

    /// Adds the counts of one gateway, multiplied by `factor`. `counts` are those of the classes by
    /// index, and `signals` those of [`Learning::signal_counts`](super::Learning::signal_counts), or
    /// empty.
    pub fn add(&mut self, counts: &[Counts], signals: &[[f64; 3]], factor: f64) {
        let mut graph = Graph::new(self.graph.classes());
        for (class, counts) in counts.iter().enumerate().take(graph.classes()) {
            graph.restore(ClassId(class as u8), counts);
        }
        self.graph.add(graph, factor);
        let mut lift = Lift::NONE;
        for (number, [sessions, ordered, _]) in signals.iter().enumerate().take(Signals::MOST) {
            lift.restore(Signals::from_index(number), *sessions, *ordered);
        }
        self.lift.add(&lift, factor);
    }
}
