//! The sums over a window, as the gateway returns them.

use bywash_history::{OutcomeCounts, WindowSums};

/// The sums over the requests that ended in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// The real length of the window in seconds.
    pub(super) seconds: f64,
    pub(super) outcomes: OutcomeCounts,
    useful_ms: u64,
    wasted_ms: u64,
    /// The median response time in milliseconds, with an error of at most a sixteenth. `None` if
    /// nothing was answered.
    pub(super) p50: Option<f32>,
    pub(super) p99: Option<f32>,
}

impl Sums {
    /// Returns the sums over the requests of all classes.
    pub(super) const fn of_all(window: &WindowSums) -> Self {
        Self::new(window.length_s, window.all)
    }

    /// Returns the sums over the requests of one class; zero if none of its requests ended.
    pub(super) fn of_class(window: &WindowSums, name: &str) -> Self {
        let class = window.classes.iter().find(|class| class.name == name);
        Self::new(window.length_s, class.map(|class| class.sums).unwrap_or_default())
    }

    const fn new(seconds: f64, sums: bywash_history::Sums) -> Self {
        let bywash_history::Sums { outcomes, useful_ms, wasted_ms, p50_ms: p50, p99_ms: p99 } =
            sums;
        Self { seconds, outcomes, useful_ms, wasted_ms, p50, p99 }
    }

    /// Returns the number of requests that ended.
    pub(super) const fn ended(&self) -> u64 {
        let OutcomeCounts {
            served,
            late,
            shed,
            throttled,
            expired,
            terminated,
            orphaned,
            upstream_error,
        } = self.outcomes;
        served + late + shed + throttled + expired + terminated + orphaned + upstream_error
    }

    /// Returns the number of requests that were refused before any work was spent on them.
    pub(super) const fn refused(&self) -> u64 {
        self.outcomes.shed + self.outcomes.throttled + self.outcomes.expired
    }

    /// Returns `count` as a fraction of all requests that ended; `None` if none did.
    pub(super) fn share(&self, count: u64) -> Option<f64> {
        (self.ended() > 0).then(|| count as f64 / self.ended() as f64)
    }

    /// Returns `count` divided by the real length of the window: a number per second.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Returns the fraction of the total service time that was useful; `None` if there was none.
    pub(super) fn useful(&self) -> Option<f64> {
        let all = self.useful_ms + self.wasted_ms;
        (all > 0).then(|| self.useful_ms as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::minute;

    #[test]
    fn a_class_has_its_sums_and_another_has_none_over_the_same_time() {
        let window = minute("search", 180, 60);
        let search = Sums::of_class(&window, "search");
        assert_eq!((search.ended(), search.outcomes.served, search.refused()), (240, 180, 60));
        assert!((search.per_second(search.ended()) - 4.0).abs() < 1e-9);
        assert_eq!(search.share(search.outcomes.served), Some(0.75));
        assert_eq!((search.p50, search.p99), (Some(80.0), Some(200.0)));
        assert_eq!(Sums::of_all(&window), search, "there is no other class");
        let cart = Sums::of_class(&window, "cart");
        assert_eq!((cart.ended(), cart.share(0), cart.p99), (0, None, None));
        assert!((cart.seconds - 60.0).abs() < 1e-9);
    }

    #[test]
    fn before_the_first_second_there_are_no_rates_and_no_shares() {
        let none = Sums::of_all(&WindowSums::default());
        assert_eq!((none.share(0), none.useful()), (None, None));
        assert!(none.per_second(2).abs() < 1e-9);
    }

    #[test]
    fn work_is_useful_or_wasted() {
        assert_eq!(Sums::of_all(&minute("search", 180, 60)).useful(), Some(0.75));
    }
}
