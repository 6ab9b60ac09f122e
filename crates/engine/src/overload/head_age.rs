//! The overload detector by the age of the oldest waiting request, the default.
//!
//! Source: `policies.md` §2. Overload begins when the oldest request in the queue has waited longer
//! than T. It ends when the queue is empty, or when the oldest request has been younger than T/2
//! for an interval I.
//!
//! T = clamp(8 · mean service, 20 ms, patience/10) and I = max(100 ms, 20 · mean service). A queue
//! of eight service times is a burst. A longer one is a backlog, which must be noticed while the
//! clients still have nine tenths of their patience. The age is measured *in* the queue. The
//! waiting time of served requests would not do: under newest first these are always young
//! requests, so the detector would no longer see overload.

use bywash_units::{Time, TimeSpan};

use crate::parameters::{Decides, Settings};

/// The overload detector by the age of the oldest request in one queue.
#[derive(Debug)]
pub struct HeadAge {
    patience: TimeSpan,
    overloaded: bool,
    /// The time since which the oldest request has been younger than T/2, for the end of overload.
    /// `None` if it was not younger at the last observation.
    calm_since: Option<Time>,
}

const LEAST: TimeSpan = TimeSpan::from_millis(20);
const LEAST_INTERVAL: TimeSpan = TimeSpan::from_millis(100);

impl HeadAge {
    /// Creates the detector from the parameter `patience`: the median patience of clients.
    pub fn new(settings: &Settings<impl Decides>) -> Self {
        Self { patience: settings.span("patience"), overloaded: false, calm_since: None }
    }

    /// Updates the detector, and returns whether there is overload. `head` is the time for which
    /// the oldest request has waited, `None` if none waits. `mean_service` is the mean time that a
    /// request holds its slot.
    pub fn observe(&mut self, now: Time, head: Option<TimeSpan>, mean_service: TimeSpan) -> bool {
        let threshold = (mean_service * 8).clamp_to(LEAST, self.patience / 10);
        match head {
            None => self.leave(),
            Some(age) if age > threshold => {
                self.overloaded = true;
                self.calm_since = None;
            }
            Some(age) if age < threshold / 2 => self.calm(now, mean_service),
            Some(_) => self.calm_since = None,
        }
        self.overloaded
    }

    fn calm(&mut self, now: Time, mean_service: TimeSpan) {
        let since = *self.calm_since.get_or_insert(now);
        if now.since(since) >= LEAST_INTERVAL.max(mean_service * 20) {
            self.leave();
        }
    }

    const fn leave(&mut self) {
        self.overloaded = false;
        self.calm_since = None;
    }

    /// Returns whether there was overload at the last observation.
    pub const fn overloaded(&self) -> bool {
        self.overloaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    const SERVICE: TimeSpan = TimeSpan::from_millis(100);

    fn detector() -> HeadAge {
        let policy = catalog::find("session-first").expect("session-first is in the catalogue");
        HeadAge::new(&policy.settings([("patience", "20s")]).unwrap())
    }

    fn at(seconds: f64) -> Time {
        Time::ZERO + TimeSpan::from_secs_f64(seconds)
    }

    fn age(milliseconds: u64) -> TimeSpan {
        TimeSpan::from_millis(milliseconds)
    }

    #[test]
    fn a_head_older_than_eight_services_is_overload() {
        let mut detector = detector();
        assert!(!detector.observe(at(1.0), Some(age(799)), SERVICE));
        assert!(detector.observe(at(2.0), Some(age(801)), SERVICE));
    }

    #[test]
    fn a_tenth_of_patience_is_overload_however_slow_the_service() {
        let mut detector = detector();
        assert!(detector.observe(at(1.0), Some(age(2001)), TimeSpan::from_secs(5)));
    }

    #[test]
    fn an_empty_queue_ends_overload_at_once() {
        let mut detector = detector();
        detector.observe(at(1.0), Some(age(900)), SERVICE);
        assert!(!detector.observe(at(1.1), None, SERVICE));
    }

    #[test]
    fn a_young_head_ends_overload_only_after_the_interval() {
        let mut detector = detector();
        detector.observe(at(0.0), Some(age(900)), SERVICE);
        assert!(detector.observe(at(1.0), Some(age(300)), SERVICE), "young for no time yet");
        assert!(detector.observe(at(2.9), Some(age(300)), SERVICE), "young for 1.9 s of 2 s");
        assert!(!detector.observe(at(3.0), Some(age(300)), SERVICE), "young for 2 s");
    }

    #[test]
    fn a_head_between_the_thresholds_starts_the_interval_again() {
        let mut detector = detector();
        detector.observe(at(0.0), Some(age(900)), SERVICE);
        detector.observe(at(1.0), Some(age(300)), SERVICE);
        detector.observe(at(2.0), Some(age(500)), SERVICE);
        assert!(detector.observe(at(3.5), Some(age(300)), SERVICE));
    }
}
