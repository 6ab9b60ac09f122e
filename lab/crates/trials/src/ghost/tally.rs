//! The counts and reaction times of all trials of one way to leave.

use bywash_harness::stats::percentile;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The counts of trials of one way to leave, and the reaction times of the proxy.
#[derive(Debug)]
pub struct Tally {
    phase: &'static str,
    departure: &'static str,
    /// Total number of trials.
    pub trials: usize,
    /// Number of trials in which a request reached the upstream after its client had left.
    pub ghosts: usize,
    /// Number of trials in which the request was not seen to be queued or blocked before its client
    /// left. Such a trial gives no result.
    pub unqueued: usize,
    /// Number of trials after which a new request did not reach the upstream, because the slot was
    /// not freed.
    pub lost: usize,
    /// Number of trials in which the proxy did not react in time. Trials in which no reaction can
    /// be observed do not count.
    pub missed: usize,
    delays_us: Vec<f64>,
}

impl Tally {
    /// Headers of the columns of [`Tally::cells`]. The first two columns are texts, the others
    /// numbers.
    pub const HEAD: [&str; 10] = [
        "phase",
        "client",
        "trials",
        "ghosts",
        "no wait",
        "slot lost",
        "missed",
        "p50 µs",
        "p99 µs",
        "max µs",
    ];

    /// Creates a tally of zero trials.
    pub fn new(phase: &'static str, departure: &'static str) -> Self {
        let (trials, ghosts, unqueued, lost, missed) = (0, 0, 0, 0, 0);
        Self { phase, departure, trials, ghosts, unqueued, lost, missed, delays_us: Vec::new() }
    }

    /// Records that the proxy reacted after `delay`.
    pub fn noticed(&mut self, delay: Duration) {
        self.delays_us.push(delay.as_secs_f64() * 1e6);
    }

    /// Records the proxy's reaction at the time `at` to a client that left at the time `left`. If
    /// `at` is `None`, the reaction counts as missed.
    pub fn reaction(&mut self, left: Instant, at: Option<Instant>) {
        match at {
            Some(at) => self.noticed(at - left),
            None => self.missed += 1,
        }
    }

    /// Formats the row of the table for this tally.
    pub fn cells(&self) -> Vec<String> {
        let counts = [self.trials, self.ghosts, self.unqueued, self.lost, self.missed];
        let words = [self.phase, self.departure].map(str::to_owned);
        let delays = self.delays().map(|d| d.map_or("-".into(), |us| format!("{us:.0}")));
        words.into_iter().chain(counts.map(|n| n.to_string())).chain(delays).collect()
    }

    /// Returns the tally as JSON for a report.
    pub fn json(&self) -> Value {
        let [p50, p99, max] = self.delays();
        json!({
            "phase": self.phase, "client": self.departure, "trials": self.trials,
            "ghosts": self.ghosts, "not_waiting": self.unqueued, "slot_lost": self.lost,
            "missed": self.missed, "noticed": self.delays_us.len(),
            "p50_us": p50, "p99_us": p99, "max_us": max,
        })
    }

    fn delays(&self) -> [Option<f64>; 3] {
        [0.5, 0.99, 1.0].map(|p| percentile(&self.delays_us, p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_counts_and_percentiles_and_a_dash_for_what_was_not_seen() {
        let mut tally = Tally::new("queued", "GET, FIN");
        tally.trials = 3;
        tally.noticed(Duration::from_micros(70));
        tally.noticed(Duration::from_micros(90));
        tally.missed = 1;
        let cells = tally.cells();
        assert_eq!(cells.len(), Tally::HEAD.len());
        assert_eq!(cells[2..], ["3", "0", "0", "0", "1", "70", "90", "90"]);
        assert_eq!(Tally::new("queued", "GET, RST").cells()[7..], ["-", "-", "-"]);
        assert_eq!(tally.json()["noticed"], 2);
    }
}
