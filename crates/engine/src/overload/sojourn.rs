//! Overload by the least time that requests have waited: `CoDel`'s signal.
//!
//! Source: Nichols and Jacobson's `CoDel` in the form that Folly and `HBase` use for requests: if over
//! a whole interval nobody waited less than the target, there is a standing queue. Measured on those
//! who leave the queue for a slot, as everybody does who builds it; so under newest first it only
//! sees the young and goes blind. That is why it is here for comparison and the age of the head is
//! the default.

use bywash_units::{Span, Time};

/// The least sojourn of the present interval and what the last one said.
#[derive(Clone, Copy, Debug)]
pub struct Sojourn {
    since: Time,
    least: Option<Span>,
    overloaded: bool,
}

const LEAST_INTERVAL: Span = Span::from_millis(100);
const LEAST: Span = Span::from_millis(20);

impl Sojourn {
    /// Nobody has waited yet.
    pub const CALM: Self = Self { since: Time::ZERO, least: None, overloaded: false };

    /// A request got a slot after it had waited for `sojourn`.
    pub fn left(&mut self, sojourn: Span) {
        self.least = Some(self.least.map_or(sojourn, |least| least.min(sojourn)));
    }

    /// Whether it is overload; `patience` is that of clients.
    pub fn look(&mut self, now: Time, mean_service: Span, patience: Span) -> bool {
        if now.since(self.since) >= LEAST_INTERVAL.max(mean_service * 20) {
            let target = (mean_service * 8).clamp_to(LEAST, patience / 10);
            self.overloaded = self.least.is_some_and(|least| least > target);
            (self.since, self.least) = (now, None);
        }
        self.overloaded
    }

    /// As of the last look.
    pub const fn overloaded(&self) -> bool {
        self.overloaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: Span = Span::from_millis(100);
    const PATIENCE: Span = Span::from_secs(20);

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    #[test]
    fn one_short_wait_in_an_interval_is_enough_for_calm() {
        let mut sojourn = Sojourn::CALM;
        sojourn.look(at(0), SERVICE, PATIENCE);
        sojourn.left(Span::from_millis(900));
        assert!(sojourn.look(at(2000), SERVICE, PATIENCE), "8 services are the target");
        sojourn.left(Span::from_millis(900));
        sojourn.left(Span::from_millis(100));
        assert!(!sojourn.look(at(4000), SERVICE, PATIENCE));
    }
}
