//! A table of keys that were noted recently, each with a value.
//!
//! A key is forgotten after a window of time. The table has a fixed size and drops the oldest keys
//! first, so a flood can make it forget early but cannot make it grow.

use alloc::vec::Vec;
use core::hash::Hash;

use bywash_units::{Time, TimeSpan};
use hashbrown::HashMap;

use crate::lists::Lists;
use crate::request::RequestId;
use crate::session::{KeyHasher, SPARE};

/// Keys that were noted recently, with the times and a value of each.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    indices: HashMap<K, u32, KeyHasher>,
    entries: Vec<Entry<K, V>>,
    /// The keys by time, as indices of `entries`, the oldest in front.
    recency: Lists,
    /// The maximum number of keys.
    most: usize,
    window: TimeSpan,
}

#[derive(Clone, Copy, Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    at: Time,
}

impl<K: Copy + Eq + Hash, V: Copy> Recent<K, V> {
    /// Creates an empty table for at most `most` keys, which are forgotten after `window`. The
    /// first key allocates the room for all of them.
    pub(crate) fn new(most: usize, window: TimeSpan) -> Self {
        let (entries, recency) = (Vec::new(), Lists::new(1));
        Self { indices: HashMap::with_hasher(KeyHasher), entries, recency, most, window }
    }

    /// Sets the time after which keys are forgotten.
    pub(crate) const fn set_window(&mut self, window: TimeSpan) {
        self.window = window;
    }

    /// Notes a key with its value. A full table drops the key that was noted longest ago.
    pub(crate) fn note(&mut self, now: Time, key: K, value: V) {
        let fresh = Entry { key, value, at: now };
        let index = match self.indices.get(&key) {
            Some(index) => *index,
            None => self.index_for(key),
        };
        match self.entries.get_mut(index as usize) {
            Some(known) => *known = fresh,
            None => self.entries.push(fresh),
        }
        self.recency.remove(RequestId(index));
        self.recency.push_back(0, RequestId(index));
    }

    fn index_for(&mut self, key: K) -> u32 {
        if self.entries.is_empty() {
            self.indices.reserve(self.most * SPARE);
            self.entries.reserve(self.most);
            self.recency.make_room(self.most);
        }
        let index = match self.recency.front(0) {
            Some(RequestId(oldest)) if self.entries.len() == self.most => {
                self.indices.remove(&self.entries[oldest as usize].key);
                oldest
            }
            _ => self.entries.len() as u32,
        };
        self.indices.insert(key, index);
        index
    }

    /// Returns the value of a key. Returns `None` if the key was not noted recently.
    pub(crate) fn get(&self, now: Time, key: K) -> Option<V> {
        let entry = self.indices.get(&key).map(|index| self.entries[*index as usize])?;
        (now.since(entry.at) <= self.window).then_some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::AttemptKey;

    const MOST: usize = 1000;

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    fn table(window: u64) -> Recent<AttemptKey, u64> {
        Recent::new(MOST, TimeSpan::from_secs(window))
    }

    #[test]
    fn a_key_is_known_within_the_window() {
        let mut table = table(20);
        table.note(at(1), AttemptKey(7), 5);
        assert_eq!(table.get(at(21), AttemptKey(7)), Some(5));
        assert_eq!(table.get(at(22), AttemptKey(7)), None);
        assert_eq!(table.get(at(2), AttemptKey(8)), None);
    }

    #[test]
    fn a_key_that_is_noted_again_counts_from_then() {
        let mut table = table(20);
        table.note(at(1), AttemptKey(7), 5);
        table.note(at(15), AttemptKey(7), 6);
        assert_eq!(table.get(at(30), AttemptKey(7)), Some(6));
    }

    #[test]
    fn of_too_many_keys_the_oldest_are_forgotten() {
        let mut table = table(3600);
        for key in 0..MOST as u64 + 100 {
            table.note(at(key / 1000), AttemptKey(key), key);
        }
        let known = (0..MOST as u64 + 100).filter_map(|key| table.get(at(9), AttemptKey(key)));
        assert_eq!(known.collect::<Vec<_>>(), (100..MOST as u64 + 100).collect::<Vec<_>>());
        assert_eq!(table.indices.len(), MOST);
    }
}
