//! Estimates how long clients wait before they leave.
//!
//! The patience of a client that left is known. The patience of a client that was answered is only
//! known to be at least the time to the answer. The estimator for such censored data is that of
//! Kaplan and Meier (1958). For each time, it determines the fraction of the still waiting clients
//! that left at that time.

use bywash_units::TimeSpan;
use serde::Serialize;

use crate::times::Times;

/// The minimum number of departures for an estimate.
const ENOUGH: u64 = 20;

/// The observed waits of clients, until the clients left or were answered.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    left: Times,
    stayed: Times,
}

/// The range of patience that a policy accepts, in seconds.
const ACCEPTED: [f64; 2] = [1.0, 600.0];

/// The value of a patience setting: an estimate, limited to the range that a policy accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatienceSetting {
    /// The accepted value in seconds.
    pub seconds: f64,
    /// Why `seconds` differs from the estimate; `None` if it does not.
    pub clamped: Option<&'static str>,
}

impl PatienceSetting {
    /// Limits an estimate in seconds to the accepted range.
    pub fn of(found: f64) -> Self {
        let clamped = if found < ACCEPTED[0] {
            Some("The scheduler takes a patience of at least 1 s, so the value here is 1 s.")
        } else if found > ACCEPTED[1] {
            Some("The scheduler takes a patience of at most 600 s, so the value here is 600 s.")
        } else {
            None
        };
        Self { seconds: found.clamp(ACCEPTED[0], ACCEPTED[1]), clamped }
    }
}

/// The estimate of how long clients wait before they leave.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Leaving {
    /// The number of requests whose client left after a known wait.
    pub left: u64,
    /// The number of requests that were answered after a known wait.
    pub stayed: u64,
    /// The median patience in seconds. `None` if fewer than half of the clients left, or if too few
    /// left for an estimate.
    pub median: Option<f64>,
    /// The mean patience in seconds, on the assumption that patience is exponentially distributed:
    /// the total wait divided by the number of departures. `None` if too few clients left.
    pub mean: Option<f64>,
    /// Points of the survival curve: the time in seconds, and the share of clients that still wait
    /// then.
    pub curve: Vec<(f64, f64)>,
}

impl Patience {
    /// Records that a client left after waiting for `after`.
    pub fn left(&mut self, after: TimeSpan) {
        self.left.add(after);
    }

    /// Records that a client was answered after waiting for `for_`.
    pub fn stayed(&mut self, for_: TimeSpan) {
        self.stayed.add(for_);
    }

    /// Returns the estimate from all recorded waits.
    pub fn leaving(&self) -> Leaving {
        let (left, stayed) = (self.left.count(), self.stayed.count());
        let mut leaving = Leaving { left, stayed, ..Leaving::default() };
        if left < ENOUGH {
            return leaving;
        }
        let mut others = self.stayed.each().peekable();
        let (mut waiting, mut share, mut waited) = ((left + stayed) as f64, 1.0, 0.0);
        for (after, count) in self.left.each() {
            // A client that was answered at exactly this time was still waiting.
            while let Some((_, answered)) = others.next_if(|(when, _)| *when < after) {
                waiting -= answered as f64;
            }
            share *= 1.0 - count as f64 / waiting;
            waiting -= count as f64;
            waited += after.as_secs_f64() * count as f64;
            let is_half = share <= 0.5 && leaving.median.is_none();
            if is_half {
                leaving.median = Some(after.as_secs_f64());
            }
            leaving.curve.push((after.as_secs_f64(), share));
        }
        waited += self.stayed.each().map(|(time, n)| time.as_secs_f64() * n as f64).sum::<f64>();
        leaving.mean = Some(waited / left as f64);
        leaving.curve = thinned(&leaving.curve);
        leaving
    }
}

/// Reduces a curve to about twenty points, including the last.
fn thinned(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let each = curve.len().div_ceil(20).max(1);
    let last = curve.len() - 1;
    let kept = curve.iter().enumerate().filter(|(at, _)| at % each == 0 || *at == last);
    kept.map(|(_, point)| *point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_answered_before_tells_that_she_would_have_waited() {
        // Patience is uniform from 1 s to 100 s; every second request is answered after 30 s.
        let mut patience = Patience::default();
        for second in 1..=100 {
            patience.left(TimeSpan::from_secs(second));
            let answered = second > 30;
            let for_ = TimeSpan::from_secs(30);
            if answered {
                patience.stayed(for_);
            } else {
                patience.left(TimeSpan::from_secs(second));
            }
        }
        let found = patience.leaving();
        assert_eq!((found.left, found.stayed), (130, 70));
        let half = found.median.unwrap();
        assert!((half / 50.0 - 1.0).abs() < 0.03, "{half}");
        assert!(found.curve.len() <= 21, "{}", found.curve.len());
        assert!(found.curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1));
    }

    #[test]
    fn of_few_nothing_is_said() {
        let mut patience = Patience::default();
        (0..19).for_each(|_| patience.left(TimeSpan::from_secs(1)));
        assert_eq!((patience.leaving().mean, patience.leaving().median), (None, None));
        patience.left(TimeSpan::from_secs(1));
        let half = patience.leaving().median.unwrap();
        assert!((half - 1.0).abs() < 0.01, "{half}");
        (0..1000).for_each(|_| patience.stayed(TimeSpan::from_secs(9)));
        assert_eq!(patience.leaving().median, None, "most would have waited longer");
        assert!((patience.leaving().mean.unwrap() - 9020.0 / 20.0).abs() < 9.0);
    }
}
