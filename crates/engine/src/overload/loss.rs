//! The overload detector by loss: the share of arrivals that were refused or evicted.
//!
//! Source: paper 2, where loss moves the threshold at which requests are terminated. As a signal
//! for the scheduler it comes late. Nothing is lost before the queue is full, and by that time the
//! oldest request has waited for as long as a full queue takes to serve.

use bywash_units::{Ratio, Time, TimeSpan};

use crate::parameters::{Decides, Settings};

/// The overload detector by loss, which is measured in consecutive intervals.
#[derive(Debug)]
pub struct Loss {
    upper: Ratio,
    interval: TimeSpan,
    since: Time,
    arrived: u32,
    lost: u32,
    overloaded: bool,
}

impl Loss {
    /// Creates the detector from the parameters `loss` and `interval`. Overload begins at the share
    /// `loss`, and ends at a fifth of it.
    pub fn new(settings: &Settings<impl Decides>) -> Self {
        Self {
            upper: settings.share("loss"),
            interval: settings.span("interval"),
            since: Time::ZERO,
            arrived: 0,
            lost: 0,
            overloaded: false,
        }
    }

    /// Counts a request that arrived at the queue. `lost` says whether a request was refused or
    /// evicted as a result.
    pub fn arrived(&mut self, now: Time, lost: bool) {
        self.update(now);
        self.arrived += 1;
        self.lost += u32::from(lost);
    }

    /// Updates the detector, and returns whether there is overload at `now`.
    pub fn update(&mut self, now: Time) -> bool {
        if now.since(self.since) >= self.interval {
            let loss = f64::from(self.lost) / f64::from(self.arrived.max(1));
            if loss > self.upper.get() {
                self.overloaded = true;
            } else if loss <= self.upper.get() / 5.0 {
                self.overloaded = false;
            }
            (self.since, self.arrived, self.lost) = (now, 0, 0);
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
    use crate::catalog;

    #[test]
    fn an_interval_with_much_loss_is_overload_and_one_with_none_ends_it() {
        let policy = catalog::find("session-first").expect("session-first is in the catalogue");
        let given = [("loss", "0.05"), ("interval", "1s")];
        let mut loss = Loss::new(&policy.settings(given).unwrap());
        let mut second = |number: u64, lost: u32| {
            let now = Time::ZERO + TimeSpan::from_secs(number);
            (0..100).for_each(|i| loss.arrived(now, i < lost));
            loss.update(now + TimeSpan::from_millis(999))
        };
        assert_eq!(
            [second(1, 4), second(2, 6), second(3, 2), second(4, 1), second(5, 0)],
            [false, false, true, true, false]
        );
    }
}
