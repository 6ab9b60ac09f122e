//! Counts of recent answered requests. They show a change of the application even after the gateway
//! has run for long.
//!
//! Requests are counted in windows of [`WINDOW`] answered requests. The counts are those of the
//! present window and of the one before, so they cover at most twice [`WINDOW`] requests.
//!
//! **No lock.** The three counts of a window are bit fields of one atomic number. So a request
//! costs one addition, and the three counts always cover the same requests. At the moment in which
//! a thread ends a window, other threads may briefly read counts without that window.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of answered requests in a window.
pub(super) const WINDOW: u64 = 1000;
/// The number of bits of each of the three counts. A count can exceed [`WINDOW`] only by the
/// requests that other threads count while one thread ends the window.
const BITS: u32 = 21;

/// Counts of answered requests, all of the same window or windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) answered: u64,
    /// The number of requests that had the session cookie.
    pub(super) carried: u64,
    /// The number of requests whose response set the session cookie.
    pub(super) set: u64,
}

impl Counts {
    fn of(number: u64) -> Self {
        let part = |place: u32| (number >> (place * BITS)) & ((1_u64 << BITS) - 1);
        Self { answered: part(0), carried: part(1), set: part(2) }
    }
}

/// The counts of the present window and of the one before.
#[derive(Debug, Default)]
pub(super) struct Recent {
    present: AtomicU64,
    before: AtomicU64,
    /// The number of windows that have ended.
    ended: AtomicU64,
}

impl Recent {
    /// Counts an answered request. `carried` says whether it had the session cookie, and `set`
    /// whether its response set that cookie. Returns the counts of the window if this request ends
    /// the window.
    pub(super) fn count(&self, carried: bool, set: bool) -> Option<Counts> {
        let request = 1 + (u64::from(carried) << BITS) + (u64::from(set) << (2 * BITS));
        let counted = self.present.fetch_add(request, Ordering::Relaxed) + request;
        if Counts::of(counted).answered != WINDOW {
            return None;
        }
        let ended = self.present.swap(0, Ordering::Relaxed);
        self.before.store(ended, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
        Some(Counts::of(ended))
    }

    /// Returns the sums of the counts of the present window and the one before.
    pub(super) fn counts(&self) -> Counts {
        let before = self.before.load(Ordering::Relaxed);
        Counts::of(before + self.present.load(Ordering::Relaxed))
    }

    /// Returns the number of the present window. The first window has the number 0.
    pub(super) fn window(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Sets all counts to 0.
    pub(super) fn restart(&self) {
        self.before.store(0, Ordering::Relaxed);
        self.present.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_until_the_next_one_ends() {
        let recent = Recent::default();
        let ends = |count: u64, carried, set| {
            (0..count).filter_map(|_| recent.count(carried, set)).collect::<Vec<_>>()
        };
        let of = |answered, carried, set| Counts { answered, carried, set };
        assert_eq!(ends(999, true, false), []);
        assert_eq!(ends(1, true, true), [of(1000, 1000, 1)]);
        assert_eq!((recent.counts(), recent.window()), (of(1000, 1000, 1), 1));
        assert_eq!(ends(999, false, false), []);
        assert_eq!(recent.counts(), of(1999, 1000, 1));
        assert_eq!(ends(1, false, false), [of(1000, 0, 0)]);
        assert_eq!((recent.counts(), recent.window()), (of(1000, 0, 0), 2));
        recent.restart();
        assert_eq!((recent.counts(), recent.window()), (of(0, 0, 0), 2));
    }
}
