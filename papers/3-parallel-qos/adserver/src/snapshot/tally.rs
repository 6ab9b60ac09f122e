//! How often a banner may be shown, and was [paper 3.5].
//!
//! What is delivered never passes the ceiling, which is at most what is reserved, which is at most what is contracted.
//! What is reserved is on disk before anything of it is delivered: after a kill all of it counts as delivered. So nothing
//! is ever delivered twice, and a kill costs a banner at most what was reserved and not delivered, one [`block`].
//!
//! The ceiling is the smaller of what is reserved and what the schedule allows. Both only grow while the server runs,
//! so whoever computes the ceiling from old figures does no harm by being late. A delivery is one exchange of an atomic:
//! no lock, and scans read while others deliver.

use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use crate::values::{Flight, Timestamp};

/// Impressions reserved at a time: 1 % of those contracted, between 1 and 64. More would lose more to a kill; with 64 a
/// banner shown a thousand times a second asks the disk sixteen times.
pub(crate) fn block(contracted: u64) -> u64 {
    (contracted / 100).clamp(1, 64)
}

/// How far ahead of its line a contract may be: 1 %, at least one impression. Without it, a line that has not reached
/// the first impression would refuse it.
pub(crate) fn slack(contracted: u64) -> u64 {
    (contracted / 100).max(1)
}

/// Impressions due by `now` if they are delivered evenly over the flight.
pub(crate) fn due(contracted: u64, flight: Flight, now: Timestamp) -> u64 {
    if now <= flight.from {
        return 0;
    }
    let passed = u128::from(now.min(flight.to).0.abs_diff(flight.from.0));
    let due = u128::from(contracted) * passed / u128::from(flight.seconds());
    u64::try_from(due).unwrap_or(contracted).min(contracted)
}

/// The counts of one banner.
#[derive(Debug)]
pub(crate) struct Tally {
    contracted: u64,
    flight: Flight,
    delivered: AtomicU64,
    reserved: AtomicU64,
    ceiling: AtomicU64,
    clicks: AtomicU64,
    /// At the last look. A clock that was wrong is believed again once it is right.
    has_ended: AtomicBool,
    is_cancelled: AtomicBool,
    /// Somebody has asked for the next reservation.
    is_asked: AtomicBool,
}

impl Tally {
    /// A banner of which `delivered` were shown so far and as many are reserved.
    pub(crate) fn new(contracted: u64, flight: Flight, delivered: u64, clicks: u64) -> Self {
        Self {
            contracted,
            flight,
            delivered: AtomicU64::new(delivered),
            reserved: AtomicU64::new(delivered),
            ceiling: AtomicU64::new(0),
            clicks: AtomicU64::new(clicks),
            has_ended: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
        }
    }

    pub(crate) fn contracted(&self) -> u64 {
        self.contracted
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Acquire)
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.load(Acquire)
    }

    pub(crate) fn clicks(&self) -> u64 {
        self.clicks.load(Relaxed)
    }

    /// Impressions contracted and not delivered: the seed's weight.
    pub(crate) fn owed(&self) -> u64 {
        self.contracted.saturating_sub(self.delivered())
    }

    /// What counts in the roulette: what is owed, or nothing while no impression may be delivered.
    pub(crate) fn weight(&self) -> u64 {
        let may = !self.is_over() && self.delivered() < self.ceiling.load(Acquire);
        if may { self.owed() } else { 0 }
    }

    /// Delivers one impression, if one may be delivered.
    pub(crate) fn claim(&self) -> bool {
        let next = |delivered| (delivered < self.ceiling.load(Acquire)).then_some(delivered + 1);
        !self.is_over() && self.delivered.fetch_update(AcqRel, Acquire, next).is_ok()
    }

    pub(crate) fn count_click(&self) {
        self.clicks.fetch_add(1, Relaxed);
    }

    /// Lets the schedule and the reservation of this moment take effect.
    pub(crate) fn refresh(&self, now: Timestamp) {
        self.has_ended.store(now >= self.flight.to, Release);
        let due = if now < self.flight.from {
            0
        } else {
            due(self.contracted, self.flight, now).saturating_add(slack(self.contracted))
        };
        self.ceiling.fetch_max(due.min(self.contracted).min(self.reserved()), AcqRel);
    }

    /// The contract was cancelled: nothing more is delivered.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Release);
    }

    fn is_over(&self) -> bool {
        self.has_ended.load(Acquire) || self.is_cancelled.load(Acquire)
    }

    /// Whether the next reservation is due: half of the block is used up, and the flight is on.
    pub(crate) fn is_short(&self, now: Timestamp) -> bool {
        let reserved = self.reserved();
        let left = reserved.saturating_sub(self.delivered());
        let runs = self.flight.holds(now) && !self.is_over();
        runs && left <= block(self.contracted) / 2 && reserved < self.contracted
    }

    /// Says that a reservation is asked for; whether nobody had.
    pub(crate) fn ask(&self) -> bool {
        !self.is_asked.swap(true, AcqRel)
    }

    /// The asking is answered or was in vain.
    pub(crate) fn answer(&self) {
        self.is_asked.store(false, Release);
    }

    /// How much to have reserved next, a block beyond what is delivered.
    pub(crate) fn next_reservation(&self) -> u64 {
        let wanted = self.delivered().saturating_add(block(self.contracted));
        wanted.min(self.contracted).max(self.reserved())
    }

    /// So much is on disk.
    pub(crate) fn reserve(&self, reserved: u64) {
        self.reserved.fetch_max(reserved.min(self.contracted), AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: Flight = Flight { from: Timestamp(1_000), to: Timestamp(2_000) };

    fn shown(tally: &Tally) -> u64 {
        (0..1_000_000).take_while(|_| tally.claim()).count() as u64
    }

    #[test]
    fn nothing_is_delivered_that_is_not_reserved() {
        let tally = Tally::new(10_000, FLIGHT, 0, 0);
        tally.refresh(Timestamp(1_999));
        assert_eq!(shown(&tally), 0);
        tally.reserve(tally.next_reservation());
        tally.refresh(Timestamp(1_999));
        assert_eq!(shown(&tally), 64);
        assert_eq!(tally.weight(), 0);
    }

    #[test]
    fn a_contract_is_not_delivered_faster_than_its_line_and_slack() {
        let tally = Tally::new(1_000, FLIGHT, 0, 0);
        tally.reserve(1_000);
        for (now, by_then) in [(999, 0), (1_000, 10), (1_100, 110), (1_500, 510), (1_999, 1_000)] {
            tally.refresh(Timestamp(now));
            shown(&tally);
            assert_eq!(tally.delivered(), by_then, "{now}");
        }
    }

    #[test]
    fn who_is_behind_catches_up_at_once() {
        let tally = Tally::new(1_000, FLIGHT, 0, 0);
        tally.reserve(1_000);
        tally.refresh(Timestamp(1_900));
        assert_eq!(shown(&tally), 910);
    }

    #[test]
    fn an_ended_or_cancelled_contract_is_not_delivered() {
        let ended = Tally::new(1_000, FLIGHT, 0, 0);
        ended.reserve(1_000);
        ended.refresh(Timestamp(2_000));
        assert_eq!((shown(&ended), ended.weight()), (0, 0));
        // The clock was an hour ahead, and is right again.
        ended.refresh(Timestamp(1_100));
        assert!(ended.claim());
        ended.cancel();
        ended.refresh(Timestamp(1_100));
        assert_eq!((shown(&ended), ended.weight()), (0, 0));
        assert_eq!(due(1_000, FLIGHT, Timestamp(9_999)), 1_000);
    }

    #[test]
    fn a_reservation_is_asked_for_once_half_a_block_is_gone() {
        let tally = Tally::new(1_000, FLIGHT, 0, 0);
        let now = Timestamp(1_500);
        assert!(tally.is_short(now) && !tally.is_short(Timestamp(500)));
        tally.reserve(tally.next_reservation());
        tally.refresh(now);
        assert_eq!((tally.reserved(), tally.is_short(now)), (10, false));
        for _ in 0..5 {
            assert!(tally.claim());
        }
        assert!(tally.is_short(now));
        assert_eq!(tally.next_reservation(), 15);
        assert!(tally.ask() && !tally.ask());
    }

    #[test]
    fn what_is_reserved_and_undelivered_is_never_more_than_a_block() {
        let tally = Tally::new(777, FLIGHT, 0, 0);
        let now = Timestamp(1_999);
        while tally.delivered() < 777 {
            if tally.is_short(now) {
                tally.reserve(tally.next_reservation());
                tally.refresh(now);
            }
            assert!(tally.reserved() - tally.delivered() <= block(777));
            assert!(tally.claim());
        }
        assert!(!tally.claim() && !tally.is_short(now));
    }
}
