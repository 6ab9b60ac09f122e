//! Estimates whether departures of clients are seen, and decides which clients have probably left
//! unseen.
//!
//! A hop in front of the gateway may hide departures. Then a client that has waited for half of its
//! patience is as likely as not to have left. Newest first leaves exactly such requests behind, and
//! they are served after the new ones. While there is more work than capacity, serving them takes
//! time from clients that are certainly there. Therefore they are refused instead. A client that is
//! still there sees the refusal and can react.
//!
//! Source: a simulation of our own (`docs/figures/policies.md`). The only advantage of an expertly
//! configured HAProxy over bywash with hidden departures was a time limit of its queue. Where
//! departures are seen, or load is below capacity, the same limit costs one percentage point.
//!
//! Patience is estimated as for any censored lifetime: the total time waited, divided by the number
//! of departures. A wait counts only beyond a twentieth of the patience, because no client leaves
//! within the first moment. The threshold cannot be higher: under newest first a full queue evicts
//! its oldest requests while they are young.

use bywash_units::{Time, TimeSpan};

/// The total time waited and the number of departures seen. Older observations count less.
#[derive(Debug)]
pub(super) struct Departures {
    patience: TimeSpan,
    /// The total time that clients waited, in seconds.
    waited: f64,
    gone: f64,
    /// The time at which a request was last refused because the queue was full; `None` if none was.
    full: Option<Time>,
}

/// The factor by which the estimated patience must exceed the configured one for departures to
/// count as hidden.
const HIDDEN_FACTOR: f64 = 5.0;
/// The divisor of the patience: the first `patience / UNCOUNTED_WAIT_DIVISOR` of each wait does not
/// count, because no client leaves that early.
const UNCOUNTED_WAIT_DIVISOR: u64 = 20;
/// The limit of the counted waiting time, as a multiple of the patience. When it is exceeded, all
/// counts are halved.
const MEMORY: f64 = 200.0;

impl Departures {
    /// Creates the estimate without observations. `patience` is the configured median patience of
    /// clients.
    pub(super) const fn new(patience: TimeSpan) -> Self {
        Self { patience, waited: 0.0, gone: 0.0, full: None }
    }

    /// Notes that a client's wait ended. `age` is the length of the wait. `gone` says whether the
    /// client has left. Otherwise the wait ended for another reason, and the client seemed to be
    /// there.
    pub(super) fn waited(&mut self, age: TimeSpan, gone: bool) {
        let short = self.patience / UNCOUNTED_WAIT_DIVISOR;
        if age < short {
            return;
        }
        self.waited += age.as_secs_f64() - short.as_secs_f64();
        self.gone += f64::from(u8::from(gone));
        if self.waited > MEMORY * self.patience.as_secs_f64() {
            self.waited /= 2.0;
            self.gone /= 2.0;
        }
    }

    /// Notes that a request was refused because the queue was full.
    pub(super) const fn note_full_queue(&mut self, now: Time) {
        self.full = Some(now);
    }

    fn are_hidden(&self) -> bool {
        let enough = HIDDEN_FACTOR * self.patience.as_secs_f64();
        self.waited > enough && self.waited > enough * self.gone
    }

    /// Returns whether a client that has waited for `age` has probably left unseen. The result is
    /// false unless departures are hidden and the queue was full recently.
    pub(super) fn presume_gone(&self, now: Time, age: TimeSpan) -> bool {
        let most = self.patience / 2;
        let pressed = self.full.is_some_and(|full| now.since(full) <= most);
        age > most && pressed && self.are_hidden()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: TimeSpan = TimeSpan::from_secs(20);
    const OLD: TimeSpan = TimeSpan::from_secs(11);

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    fn seen(every: Option<u32>) -> Departures {
        let mut departures = Departures::new(PATIENCE);
        for number in 0..1000 {
            let gone = every.is_some_and(|every| number % every == 0);
            departures.waited(TimeSpan::from_secs(10), gone);
        }
        departures.note_full_queue(at(100));
        departures
    }

    #[test]
    fn where_nobody_is_seen_to_leave_the_old_are_presumed_gone() {
        let departures = seen(None);
        assert!(departures.presume_gone(at(101), OLD));
        assert!(!departures.presume_gone(at(101), TimeSpan::from_secs(9)), "not old enough");
        assert!(!departures.presume_gone(at(111), OLD), "nobody wanted the time of late");
    }

    #[test]
    fn where_departures_are_seen_who_waits_is_there() {
        // Each wait counts nine seconds, and one client in four leaves. So the estimated patience
        // is 36 seconds.
        assert!(!seen(Some(4)).presume_gone(at(101), OLD));
    }

    #[test]
    fn short_waits_that_nobody_leaves_say_nothing() {
        let mut departures = Departures::new(PATIENCE);
        (0..100_000).for_each(|_| departures.waited(TimeSpan::from_millis(110), false));
        departures.note_full_queue(at(100));
        assert!(!departures.presume_gone(at(101), OLD));
    }

    #[test]
    fn at_first_nothing_is_presumed() {
        let mut departures = Departures::new(PATIENCE);
        departures.note_full_queue(at(100));
        assert!(!departures.presume_gone(at(101), OLD));
    }
}
