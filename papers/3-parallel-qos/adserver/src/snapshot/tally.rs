//! The counts of a banner: how often it may be shown, and how often it was [paper 3.5].
//!
//! The numbers are ordered: delivered ≤ ceiling ≤ reserved ≤ contracted impressions. Impressions
//! are reserved on disk before any of them is delivered, and after a kill all reserved ones count
//! as delivered. Therefore no impression is ever delivered twice. A kill costs a banner at most the
//! impressions that were reserved and not delivered, which is one [`block`].
//!
//! The ceiling is the smaller of the reserved impressions and those that the schedule allows. Both
//! only grow while the server runs, so a thread may safely compute the ceiling from old values. A
//! delivery is one atomic exchange. It needs no lock, and scans can read the counts at the same
//! time.

use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use crate::values::{Flight, Timestamp};

/// Returns the number of impressions to reserve at a time: 1 % of those contracted, between 1 and
/// 64. A larger block would lose more impressions in a kill. With 64, a banner that is shown a
/// thousand times per second needs sixteen writes to the disk per second.
pub(crate) fn block(contracted: u64) -> u64 {
    (contracted / 100).clamp(1, 64)
}

/// Returns the number of impressions by which a banner may be ahead of its even schedule: 1 % of
/// those contracted, at least one. Without this slack, the first impression could be delivered only
/// when the schedule reaches one.
pub(crate) fn slack(contracted: u64) -> u64 {
    (contracted / 100).max(1)
}

/// Returns the number of impressions that should be delivered by `now`, if they are spread evenly
/// over the flight.
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
    /// The number of impressions that the contract promises for this banner.
    contracted: u64,
    flight: Flight,
    /// The number of impressions delivered so far.
    delivered: AtomicU64,
    /// The number of impressions reserved on disk, which includes the delivered ones.
    reserved: AtomicU64,
    /// The maximum number of impressions that may be delivered in total, computed at the last refresh.
    ceiling: AtomicU64,
    clicks: AtomicU64,
    /// Whether the flight had ended at the last refresh. If the clock is set back, the next refresh
    /// resets this.
    has_ended: AtomicBool,
    is_cancelled: AtomicBool,
    /// Whether the next reservation has been requested from the writer, which has not answered yet.
    is_asked: AtomicBool,
}

impl Tally {
    /// Creates the counts of a banner of which `delivered` impressions were delivered. That number
    /// also counts as reserved. Nothing may be delivered before the first refresh.
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

    /// Returns the number of impressions that are contracted and not delivered, which is the
    /// paper's weight.
    pub(crate) fn owed(&self) -> u64 {
        self.contracted.saturating_sub(self.delivered())
    }

    /// Returns the weight of the banner in the roulette: the owed impressions, or zero if none may
    /// be delivered now.
    pub(crate) fn weight(&self) -> u64 {
        let may = !self.is_over() && self.delivered() < self.ceiling.load(Acquire);
        if may { self.owed() } else { 0 }
    }

    /// Delivers one impression if one may be delivered now. Returns whether it was delivered.
    pub(crate) fn deliver(&self) -> bool {
        let next = |delivered| (delivered < self.ceiling.load(Acquire)).then_some(delivered + 1);
        !self.is_over() && self.delivered.fetch_update(AcqRel, Acquire, next).is_ok()
    }

    pub(crate) fn count_click(&self) {
        self.clicks.fetch_add(1, Relaxed);
    }

    /// Recomputes the ceiling from the schedule at `now` and the present reservation.
    pub(crate) fn refresh(&self, now: Timestamp) {
        self.has_ended.store(now >= self.flight.to, Release);
        let due = if now < self.flight.from {
            0
        } else {
            due(self.contracted, self.flight, now).saturating_add(slack(self.contracted))
        };
        self.ceiling.fetch_max(due.min(self.contracted).min(self.reserved()), AcqRel);
    }

    /// Stops all deliveries of the banner, because its contract was cancelled.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Release);
    }

    fn is_over(&self) -> bool {
        self.has_ended.load(Acquire) || self.is_cancelled.load(Acquire)
    }

    /// Returns whether the next reservation is due: at most half of a block is reserved and not
    /// delivered, and the flight is running.
    pub(crate) fn is_short(&self, now: Timestamp) -> bool {
        let reserved = self.reserved();
        let left = reserved.saturating_sub(self.delivered());
        let runs = self.flight.holds(now) && !self.is_over();
        runs && left <= block(self.contracted) / 2 && reserved < self.contracted
    }

    /// Marks the next reservation as requested. Returns whether this call did so, which obliges the
    /// caller to request it.
    pub(crate) fn mark_requested(&self) -> bool {
        !self.is_asked.swap(true, AcqRel)
    }

    /// Removes the mark of [`Tally::mark_requested`], because the reservation was made or has
    /// failed.
    pub(crate) fn unmark_requested(&self) {
        self.is_asked.store(false, Release);
    }

    /// Returns the total that the next reservation sets: the delivered impressions plus one block,
    /// but at most the contracted ones.
    pub(crate) fn next_reservation(&self) -> u64 {
        let wanted = self.delivered().saturating_add(block(self.contracted));
        wanted.min(self.contracted).max(self.reserved())
    }

    /// Records that `reserved` impressions in total are reserved on disk. A smaller number than
    /// before has no effect.
    pub(crate) fn reserve(&self, reserved: u64) {
        self.reserved.fetch_max(reserved.min(self.contracted), AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: Flight = Flight { from: Timestamp(1_000), to: Timestamp(2_000) };

    fn shown(tally: &Tally) -> u64 {
        (0..1_000_000).take_while(|_| tally.deliver()).count() as u64
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
        // The clock was ahead and has been corrected.
        ended.refresh(Timestamp(1_100));
        assert!(ended.deliver());
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
            assert!(tally.deliver());
        }
        assert!(tally.is_short(now));
        assert_eq!(tally.next_reservation(), 15);
        assert!(tally.mark_requested() && !tally.mark_requested());
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
            assert!(tally.deliver());
        }
        assert!(!tally.deliver() && !tally.is_short(now));
    }
}
