//! The table of lost attempts, by which their repetitions are recognised.
//!
//! An attempt is lost when it was refused, has expired or was given up by its client. A request for
//! the same content repeats it if it arrives within the retry window. The table has a fixed size
//! and drops the oldest attempts first. So a flood can make it miss retries but cannot make it
//! grow.

use bywash_units::{Time, TimeSpan};
use hashbrown::HashMap;

use alloc::vec::Vec;

use crate::lists::Lists;
use crate::request::{AttemptKey, RequestId};
use crate::session::{KeyHasher, SPARE};

/// The attempts that were lost recently, with the times of their loss.
#[derive(Debug)]
pub struct Attempts {
    indices: HashMap<AttemptKey, u32, KeyHasher>,
    lost: Vec<Lost>,
    /// The attempts by time of loss, as indices of `lost`, the oldest in front.
    recency: Lists,
    window: TimeSpan,
}

#[derive(Clone, Copy, Debug)]
struct Lost {
    key: AttemptKey,
    at: Time,
}

/// The maximum number of lost attempts in the table. It is more than the length of a queue. The
/// table and its map take 800 kB.
const MOST: usize = 8192;

impl Attempts {
    /// Creates an empty table. A request is a repetition if it arrives within `window` after the
    /// loss.
    pub fn new(window: TimeSpan) -> Self {
        Self {
            indices: HashMap::with_capacity_and_hasher(MOST * SPARE, KeyHasher),
            lost: Vec::with_capacity(MOST),
            recency: Lists::with_room(1, MOST),
            window,
        }
    }

    /// Sets the time after a loss within which a request is a repetition.
    pub const fn reconfigure(&mut self, window: TimeSpan) {
        self.window = window;
    }

    /// Notes that an attempt with this key was lost. A full table drops the attempt that was lost
    /// longest ago.
    pub fn lost(&mut self, now: Time, key: AttemptKey) {
        let fresh = Lost { key, at: now };
        let index = match self.indices.get(&key) {
            Some(index) => *index,
            None => self.index_for(key),
        };
        match self.lost.get_mut(index as usize) {
            Some(known) => *known = fresh,
            None => self.lost.push(fresh),
        }
        self.recency.remove(RequestId(index));
        self.recency.push_back(0, RequestId(index));
    }

    fn index_for(&mut self, key: AttemptKey) -> u32 {
        let index = match self.recency.front(0) {
            Some(RequestId(oldest)) if self.lost.len() == MOST => {
                self.indices.remove(&self.lost[oldest as usize].key);
                oldest
            }
            _ => self.lost.len() as u32,
        };
        self.indices.insert(key, index);
        index
    }

    /// Returns whether an attempt with this key was lost recently.
    pub fn repeats(&self, now: Time, key: AttemptKey) -> bool {
        let lost = self.indices.get(&key).map(|index| self.lost[*index as usize]);
        lost.is_some_and(|lost| now.since(lost.at) <= self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    #[test]
    fn the_same_within_the_window_is_a_repetition() {
        let mut attempts = Attempts::new(TimeSpan::from_secs(20));
        attempts.lost(at(1), AttemptKey(7));
        assert!(attempts.repeats(at(21), AttemptKey(7)));
        assert!(!attempts.repeats(at(22), AttemptKey(7)));
        assert!(!attempts.repeats(at(2), AttemptKey(8)));
    }

    #[test]
    fn a_loss_that_is_lost_again_counts_from_then() {
        let mut attempts = Attempts::new(TimeSpan::from_secs(20));
        attempts.lost(at(1), AttemptKey(7));
        attempts.lost(at(15), AttemptKey(7));
        assert!(attempts.repeats(at(30), AttemptKey(7)));
    }

    #[test]
    fn of_too_many_losses_the_oldest_are_forgotten() {
        let mut attempts = Attempts::new(TimeSpan::from_secs(3600));
        for key in 0..MOST as u64 + 100 {
            attempts.lost(at(key / 1000), AttemptKey(key));
        }
        let known = (0..MOST as u64 + 100).filter(|key| attempts.repeats(at(9), AttemptKey(*key)));
        assert_eq!(known.collect::<Vec<_>>(), (100..MOST as u64 + 100).collect::<Vec<_>>());
        assert_eq!(attempts.indices.len(), MOST);
    }
}
