//! The overload detector by the shortest wait of served requests: `CoDel`'s signal.
//!
//! Source: Nichols and Jacobson's `CoDel` in the form that Folly and `HBase` use for requests. If
//! no request waited less than the target during a whole interval, there is a standing queue. The
//! wait is measured when a request leaves the queue for a slot, as in the other implementations. So
//! under newest first the detector measures only young requests, and no longer sees overload. That
//! is why it is only for comparison, and the age of the oldest request is the default.

use bywash_units::{Time, TimeSpan};

/// The shortest wait in the present interval, and whether there was overload in the last one.
#[derive(Clone, Copy, Debug)]
pub struct Sojourn {
    since: Time,
    least: Option<TimeSpan>,
    overloaded: bool,
}

const LEAST_INTERVAL: TimeSpan = TimeSpan::from_millis(100);
const LEAST: TimeSpan = TimeSpan::from_millis(20);

impl Sojourn {
    /// The detector before any request has waited.
    pub const CALM: Self = Self { since: Time::ZERO, least: None, overloaded: false };

    /// Notes that a request got a slot. `sojourn` is the time that it had waited.
    pub fn left(&mut self, sojourn: TimeSpan) {
        self.least = Some(self.least.map_or(sojourn, |least| least.min(sojourn)));
    }

    /// Updates the detector at the end of an interval, and returns whether there is overload.
    /// `patience` is the clients' median patience.
    pub fn update(&mut self, now: Time, mean_service: TimeSpan, patience: TimeSpan) -> bool {
        if now.since(self.since) >= LEAST_INTERVAL.max(mean_service * 20) {
            let target = (mean_service * 8).clamp_to(LEAST, patience / 10);
            self.overloaded = self.least.is_some_and(|least| least > target);
            (self.since, self.least) = (now, None);
        }
        self.overloaded
    }

    /// Returns whether there was overload in the last complete interval.
    pub const fn overloaded(&self) -> bool {
        self.overloaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: TimeSpan = TimeSpan::from_millis(100);
    const PATIENCE: TimeSpan = TimeSpan::from_secs(20);

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_millis(milliseconds)
    }

    #[test]
    fn one_short_wait_in_an_interval_is_enough_for_calm() {
        let mut sojourn = Sojourn::CALM;
        sojourn.update(at(0), SERVICE, PATIENCE);
        sojourn.left(TimeSpan::from_millis(900));
        assert!(sojourn.update(at(2000), SERVICE, PATIENCE), "8 services are the target");
        sojourn.left(TimeSpan::from_millis(900));
        sojourn.left(TimeSpan::from_millis(100));
        assert!(!sojourn.update(at(4000), SERVICE, PATIENCE));
    }
}
