//! The live summary of one side of the demo: current rates of requests, and a strip of characters
//! that shows the orders over time. Both are computed from running counts.

use std::collections::VecDeque;

use bywash_load::Progress;
use bywash_units::TimeSpan;

/// The number of cells of the strip, each one character wide. The strip covers the whole run.
pub(super) const CELLS: usize = 20;
/// The number of readings over which a rate is computed. There are two readings per second.
const READINGS: usize = 3;

pub(super) struct Gauge {
    recent: VecDeque<Progress>,
    /// The time that one cell of the strip stands for.
    cell: TimeSpan,
    /// The number of orders in each cell of the strip. The last cell is still in progress.
    orders: Vec<u64>,
}

/// Current rates of requests, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) answered: f64,
    pub(super) gave_up: f64,
    pub(super) refused: f64,
}

impl Gauge {
    /// Creates a gauge for a run of `duration`.
    pub(super) fn new(duration: TimeSpan) -> Self {
        let cell = TimeSpan::from_nanos((duration.as_nanos() / CELLS as u64).max(1));
        Self { recent: VecDeque::new(), cell, orders: Vec::new() }
    }

    pub(super) fn read(&mut self, progress: &Progress) {
        let cell = progress.elapsed.as_nanos() / self.cell.as_nanos();
        self.orders.resize(self.orders.len().max(cell as usize + 1), 0);
        self.orders[cell as usize] += progress.orders - self.orders_so_far();
        if self.recent.len() == READINGS {
            self.recent.pop_front();
        }
        self.recent.push_back(*progress);
    }

    pub(super) fn orders_so_far(&self) -> u64 {
        self.recent.back().map_or(0, |last| last.orders)
    }

    pub(super) fn rates(&self) -> Rates {
        let (Some(first), Some(last)) = (self.recent.front(), self.recent.back()) else {
            return Rates::default();
        };
        let seconds = (last.elapsed.as_secs_f64() - first.elapsed.as_secs_f64()).max(0.1);
        let rate = |from: u64, to: u64| (to - from) as f64 / seconds;
        Rates {
            answered: rate(first.completed, last.completed),
            gave_up: rate(first.timed_out, last.timed_out),
            refused: rate(first.dropped, last.dropped),
        }
    }

    /// Returns the highest number of orders in any cell of the strip.
    pub(super) fn most(&self) -> u64 {
        self.past().iter().copied().max().unwrap_or(0)
    }

    /// Draws the orders over time, with one character for each cell. A cell with `most` orders has
    /// the full height. A dot stands for a future cell.
    pub(super) fn strip(&self, most: u64) -> String {
        const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let height = |orders: &u64| HEIGHTS[(orders * 7).div_ceil(most.max(1)).min(7) as usize];
        let past = self.past();
        let to_come = std::iter::repeat_n('·', CELLS - past.len());
        past.iter().map(height).chain(to_come).collect()
    }

    fn past(&self) -> &[u64] {
        &self.orders[..self.orders.len().saturating_sub(1).min(CELLS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, answered: u64, orders: u64) -> Progress {
        let elapsed = TimeSpan::from_secs(seconds);
        Progress { elapsed, completed: answered, orders, ..Progress::default() }
    }

    #[test]
    fn a_rate_is_that_of_the_last_readings_and_not_of_the_run() {
        let mut gauge = Gauge::new(TimeSpan::from_secs(20));
        assert_eq!(gauge.rates(), Rates::default());
        for (second, answered) in [(0, 0), (1, 1000), (2, 1010), (3, 1020)] {
            gauge.read(&at(second, answered, 0));
        }
        assert!((gauge.rates().answered - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_strip_shows_when_the_orders_came() {
        let mut gauge = Gauge::new(TimeSpan::from_secs(20));
        for (second, orders) in [(0, 0), (1, 0), (2, 8), (3, 9), (4, 9)] {
            gauge.read(&at(second, 0, orders));
        }
        assert_eq!(gauge.most(), 8);
        assert_eq!(gauge.strip(8), "▁▁█▂················");
        assert_eq!(gauge.orders_so_far(), 9);
    }

    #[test]
    fn a_run_that_goes_on_after_its_time_leaves_the_strip_full() {
        let mut gauge = Gauge::new(TimeSpan::from_secs(20));
        gauge.read(&at(50, 0, 1));
        assert_eq!(gauge.strip(1).chars().count(), CELLS);
    }
}
