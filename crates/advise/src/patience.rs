//! How long clients wait before they leave.
//!
//! Of a request that was left it is known how long its client waited; of one that was answered only that she would
//! have waited at least as long. The estimate for such a mixture is Kaplan and Meier's (1958): of all who were still
//! waiting at a time, the part that left then.

use bywash_units::Span;
use serde::Serialize;

use crate::times::Times;

/// With fewer who left nothing is estimated.
const ENOUGH: u64 = 20;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    left: Times,
    stayed: Times,
}

/// Patience that an order of requests can be told, in seconds.
const TOLD: [f64; 2] = [1.0, 600.0];

/// Patience as an order of requests is told of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// Seconds.
    pub seconds: f64,
    /// If that is not what was found, why.
    pub clamped: Option<&'static str>,
}

impl Told {
    /// Of what was found, in seconds.
    pub fn of(found: f64) -> Self {
        let clamped = if found < TOLD[0] {
            Some("An order is told no less than 1 s, so that stands here.")
        } else if found > TOLD[1] {
            Some("An order is told no more than 600 s, so that stands here.")
        } else {
            None
        };
        Self { seconds: found.clamp(TOLD[0], TOLD[1]), clamped }
    }
}

/// What was found of patience.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Leaving {
    /// Requests whose client left and whose wait is known.
    pub left: u64,
    /// Requests that were answered and whose wait is known.
    pub stayed: u64,
    /// Half of all have left after so many seconds; `None`: so many never left, or too few did.
    pub median: Option<f64>,
    /// If patience were exponential its mean: seconds that were waited, over those who left. `None` if too few did.
    pub mean: Option<f64>,
    /// Points of the curve: seconds, and the share that still waits.
    pub curve: Vec<(f64, f64)>,
}

impl Patience {
    /// Somebody left after that.
    pub fn left(&mut self, after: Span) {
        self.left.add(after);
    }

    /// Somebody was answered after that.
    pub fn stayed(&mut self, for_: Span) {
        self.stayed.add(for_);
    }

    /// What follows.
    pub fn leaving(&self) -> Leaving {
        let (left, stayed) = (self.left.count(), self.stayed.count());
        let mut leaving = Leaving { left, stayed, ..Leaving::default() };
        if left < ENOUGH {
            return leaving;
        }
        let mut others = self.stayed.each().peekable();
        let (mut waiting, mut share, mut waited) = ((left + stayed) as f64, 1.0, 0.0);
        for (after, count) in self.left.each() {
            // Who was answered at that very time was still waiting.
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

/// Of a curve some twenty points, the last among them.
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
        // Patience is 1 s to 100 s alike; every second request is answered after 30 s.
        let mut patience = Patience::default();
        for second in 1..=100 {
            patience.left(Span::from_secs(second));
            let answered = second > 30;
            let for_ = Span::from_secs(30);
            if answered { patience.stayed(for_) } else { patience.left(Span::from_secs(second)) }
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
        (0..19).for_each(|_| patience.left(Span::from_secs(1)));
        assert_eq!((patience.leaving().mean, patience.leaving().median), (None, None));
        patience.left(Span::from_secs(1));
        let half = patience.leaving().median.unwrap();
        assert!((half - 1.0).abs() < 0.01, "{half}");
        (0..1000).for_each(|_| patience.stayed(Span::from_secs(9)));
        assert_eq!(patience.leaving().median, None, "most would have waited longer");
        assert!((patience.leaving().mean.unwrap() - 9020.0 / 20.0).abs() < 9.0);
    }
}
