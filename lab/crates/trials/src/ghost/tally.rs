//! What the trials of one way to leave came to.

use bywash_harness::stats::percentile;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Counts over trials, and how long the proxy took to react.
#[derive(Debug)]
pub struct Tally {
    phase: &'static str,
    departure: &'static str,
    /// Trials done.
    pub trials: usize,
    /// Trials in which a request reached the upstream after its client had left.
    pub ghosts: usize,
    /// Trials in which the request was not (seen to be) waiting or blocked before its client left:
    /// they show nothing.
    pub unqueued: usize,
    /// Trials after which a fresh request did not get through.
    pub lost: usize,
    /// Trials in which no reaction was seen in time, where one can be seen.
    pub missed: usize,
    delays_us: Vec<f64>,
}

impl Tally {
    /// The cells of a row, in the order of [`Tally::cells`]; the first two are words.
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

    /// Nothing tried yet.
    pub fn new(phase: &'static str, departure: &'static str) -> Self {
        let (trials, ghosts, unqueued, lost, missed) = (0, 0, 0, 0, 0);
        Self { phase, departure, trials, ghosts, unqueued, lost, missed, delays_us: Vec::new() }
    }

    /// The proxy reacted after `delay`.
    pub fn noticed(&mut self, delay: Duration) {
        self.delays_us.push(delay.as_secs_f64() * 1e6);
    }

    /// The proxy reacted to what happened at `left`, at some time or not at all.
    pub fn reaction(&mut self, left: Instant, at: Option<Instant>) {
        match at {
            Some(at) => self.noticed(at - left),
            None => self.missed += 1,
        }
    }

    /// One row of a table.
    pub fn cells(&self) -> Vec<String> {
        let counts = [self.trials, self.ghosts, self.unqueued, self.lost, self.missed];
        let words = [self.phase, self.departure].map(str::to_owned);
        let delays = self.delays().map(|d| d.map_or("-".into(), |us| format!("{us:.0}")));
        words.into_iter().chain(counts.map(|n| n.to_string())).chain(delays).collect()
    }

    /// For a report's file.
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
