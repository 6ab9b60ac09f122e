//! Decides whether the figures of a run are valid.
//!
//! If the load generator could not follow the scenario, the figures describe the load generator and
//! not the site. A reader cannot see this from the figures, so the run must be reported as invalid.

use std::fmt;

use bywash_units::TimeSpan;

/// The 99th percentile of the lag above which a run is invalid. With more lag, the load generator
/// would cause response times of some tens of milliseconds.
const MOST_LAG: TimeSpan = TimeSpan::from_millis(10);

/// Counts of the load generator's own failures in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flaws {
    /// The number of visitors that were not started because no slot was free.
    pub(crate) not_started: u64,
    /// The number of connections that the load generator should have kept open, to hide that the
    /// client had left, but closed because no slot was free.
    pub(crate) not_hidden: u64,
    /// The number of connections for which this machine had no descriptor or port left.
    pub(crate) exhausted: u64,
}

/// The facts on which the verdict on a run depends. Its `Display` form has full sentences for the
/// reader of the result, and is empty if the run is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) flaws: Flaws,
    pub(crate) lag_p99: TimeSpan,
    /// The maximum number of concurrent visitors.
    pub(crate) max_active: usize,
}

impl Verdict {
    /// Returns the reasons why the run is invalid; `None` if it is valid.
    pub(crate) fn invalid(self) -> Option<String> {
        let text = self.to_string();
        (!text.is_empty()).then_some(text)
    }

    fn faults(self) -> impl Iterator<Item = String> {
        let max_active = self.max_active;
        let lag = (self.lag_p99 > MOST_LAG).then(|| {
            let lag = self.lag_p99;
            format!(
                "the load generator fell behind its schedule: its p99 lag is {lag}, above \
                 {MOST_LAG}"
            )
        });
        let not_started = some(self.flaws.not_started).map(|n| {
            let remedy = "raise max_visitors or `ulimit -n`";
            format!("{n} visitors were not started: at most {max_active} can be active ({remedy})")
        });
        let not_hidden = some(self.flaws.not_hidden).map(|n| {
            let limit = format!("at most {max_active} can be open");
            format!("{n} connections were closed although closes are hidden: {limit}")
        });
        let exhausted = some(self.flaws.exhausted).map(|n| {
            format!("{n} connections failed because this machine had no descriptor or port left")
        });
        [lag, not_started, not_hidden, exhausted].into_iter().flatten()
    }
}

fn some(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.faults().collect();
        f.write_str(&faults.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(lag_p99: TimeSpan, flaws: Flaws) -> Option<String> {
        let verdict = Verdict { flaws, lag_p99, max_active: 7 };
        verdict.invalid()
    }

    #[test]
    fn a_generator_that_kept_up_is_valid() {
        assert_eq!(verdict(TimeSpan::from_millis(10), Flaws::default()), None);
    }

    #[test]
    fn a_generator_that_was_late_says_how_late() {
        let text = verdict(TimeSpan::from_millis(11), Flaws::default()).expect("11 ms is too late");
        assert!(text.contains("11ms"), "{text}");
    }

    #[test]
    fn everything_that_is_wrong_is_named() {
        let flaws = Flaws { not_started: 3, not_hidden: 4, exhausted: 5 };
        let text = verdict(TimeSpan::ZERO, flaws).expect("nothing of this is allowed");
        for part in ["3 visitors", "4 connections", "5 connections", "at most 7"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
}
