//! Whether clients are seen to leave, and what to do about those that may have left unseen.
//!
//! Behind a hop that hides departures, a request that has waited for half of its client's patience
//! is as likely as not to be for nobody, and newest first leaves just those behind: once the new
//! ones have been served, the old ones' turn comes. While there is more to do than can be done,
//! their service is taken from somebody who is certainly there. So then they are refused instead,
//! which whoever is still there can see and answer.
//!
//! Source: a simulation of our own (`docs/figures.md`, «Policies»): a queue's time limit was all that
//! HAProxy in expert hands had ahead of us where departures are hidden; and where they are seen, or
//! load is below capacity, the same limit costs a point.
//!
//! Patience is estimated as for any censored life: time waited, all together, for each departure.
//! Only what is waited beyond a twentieth of the patience counts: within a moment nobody leaves
//! anywhere. More must not be asked for: under newest first a full queue pushes its oldest out young.

use bywash_units::{Span, Time};

/// Time waited and departures seen, fading.
#[derive(Debug)]
pub(super) struct Departures {
    patience: Span,
    /// Seconds.
    waited: f64,
    gone: f64,
    /// When somebody was last refused for want of room.
    full: Option<Time>,
}

/// Departures are hidden if clients seem to be so many times as patient as they are.
const HIDDEN: f64 = 5.0;
/// A wait is evidence from this part of the patience on.
const LONG: u64 = 20;
/// Of what is known, half is forgotten when this many patiences have been waited.
const MEMORY: f64 = 200.0;

impl Departures {
    /// Nobody was seen yet; clients have this median patience.
    pub(super) const fn new(patience: Span) -> Self {
        Self { patience, waited: 0.0, gone: 0.0, full: None }
    }

    /// Somebody who had waited so long waits no longer: because she has left, or for another
    /// reason, and was still there as far as anybody could see.
    pub(super) fn waited(&mut self, age: Span, gone: bool) {
        let short = self.patience / LONG;
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

    /// Somebody was refused for want of room.
    pub(super) const fn was_full(&mut self, now: Time) {
        self.full = Some(now);
    }

    fn are_hidden(&self) -> bool {
        let enough = HIDDEN * self.patience.as_secs_f64();
        self.waited > enough && self.waited > enough * self.gone
    }

    /// Whether whoever has waited for so long has probably left, and others want the time.
    pub(super) fn presume_gone(&self, now: Time, age: Span) -> bool {
        let most = self.patience / 2;
        let pressed = self.full.is_some_and(|full| now.since(full) <= most);
        age > most && pressed && self.are_hidden()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Span = Span::from_secs(20);
    const OLD: Span = Span::from_secs(11);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn seen(every: Option<u32>) -> Departures {
        let mut departures = Departures::new(PATIENCE);
        for number in 0..1000 {
            let gone = every.is_some_and(|every| number % every == 0);
            departures.waited(Span::from_secs(10), gone);
        }
        departures.was_full(at(100));
        departures
    }

    #[test]
    fn where_nobody_is_seen_to_leave_the_old_are_presumed_gone() {
        let departures = seen(None);
        assert!(departures.presume_gone(at(101), OLD));
        assert!(!departures.presume_gone(at(101), Span::from_secs(9)), "not old enough");
        assert!(!departures.presume_gone(at(111), OLD), "nobody wanted the time of late");
    }

    #[test]
    fn where_departures_are_seen_who_waits_is_there() {
        // One in four of those who waited for nine seconds more: patience is 36.
        assert!(!seen(Some(4)).presume_gone(at(101), OLD));
    }

    #[test]
    fn short_waits_that_nobody_leaves_say_nothing() {
        let mut departures = Departures::new(PATIENCE);
        (0..100_000).for_each(|_| departures.waited(Span::from_millis(110), false));
        departures.was_full(at(100));
        assert!(!departures.presume_gone(at(101), OLD));
    }

    #[test]
    fn at_first_nothing_is_presumed() {
        let mut departures = Departures::new(PATIENCE);
        departures.was_full(at(100));
        assert!(!departures.presume_gone(at(101), OLD));
    }
}
