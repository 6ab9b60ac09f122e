//! The choice of the session that is evicted from a full table.
//!
//! **Two segments.** A session is *proven* once it was served a transaction, or a class that some
//! class names in `requires`. Every other session is *fresh*. A fresh session is evicted while
//! fresh ones have more than half of the table, and otherwise a proven one. So each kind can have
//! half of the table. With less for fresh sessions, proven sessions whose visitors left long ago
//! would leave no room for new visitors.
//!
//! This is the segmented LRU of Karedla, Love and Wherry, «Caching Strategies to Improve Disk
//! System Performance», Computer 27(3), 1994. It differs in what promotes an entry. In the paper a
//! second access does. Here that would cost an attacker only one more cheap request for each
//! invented cookie. A proof costs what the site asks of its buyers.
//!
//! **A quota for each address.** A proof is cheap if the answer to a product page is enough for it.
//! The quota bounds the sessions of one segment that an address may keep. If several addresses
//! exceed the quota, the address with the most sessions loses the session that was served longest
//! ago. The quota is a 1024th of the table, and 16 sessions at least. Addresses are compared by the
//! binary logarithm of the number of sessions that they hold. Among equals, the address of the new
//! session comes first. If no address holds more than its quota, the session of the segment that
//! was served longest ago is evicted. A table that is not full has no quota.
//!
//! This is stochastic fairness queueing (INFOCOM 1990), which also takes from the longest queue. As
//! there, addresses are distinguished by a keyed hash in a table of fixed size. Nothing is
//! allocated for a new address, and two addresses with the same entry count as one.
//!
//! Every operation takes constant time. A session whose address is not known has no quota.

use super::Segment;
use crate::lists::Lists;
use crate::request::{AddressKey, RequestId};

/// The divisor of the reserve: 1/`RESERVE_DIVISOR` of the table's places are reserved for fresh
/// sessions. Proven sessions have the rest.
const RESERVE_DIVISOR: u32 = 2;
/// The divisor of the quota: one address may have 1/`QUOTA_DIVISOR` of the table's places in a
/// segment.
const QUOTA_DIVISOR: u32 = 1024;
/// The minimum quota in sessions. It lets a household or a small office keep its sessions even in a
/// small table.
const LEAST_QUOTA: u32 = 16;
/// The minimum number of entries of the table of addresses; a power of two.
const LEAST_ENTRIES: usize = 1024;
/// The maximum number of entries of the table of addresses; a power of two.
const MOST_ENTRIES: usize = 65_536;
/// The number of weights. The weight of an address is the binary logarithm of the number of its
/// sessions.
const WEIGHTS: usize = 32;

/// The order of eviction: all sessions, as indices, by segment and by address.
#[derive(Debug)]
pub(super) struct Segments {
    /// The sessions of each segment, the one served longest ago in front.
    recency: Lists,
    /// The sessions of each segment and entry of the table of addresses, the one served longest ago
    /// in front.
    of_address: Lists,
    /// The addresses that hold more than their quota, by segment and weight. An element is the
    /// number of a list of `of_address`.
    over_quota: Lists,
    entries: usize,
    quota: u32,
    reserve: u32,
}

/// A session to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Victim {
    pub(super) index: u32,
    pub(super) segment: Segment,
    /// Whether the session's address holds more than its quota.
    pub(super) over_quota: bool,
}

impl Segments {
    pub(super) fn new(capacity: usize) -> Self {
        let entries = capacity.next_power_of_two().clamp(LEAST_ENTRIES, MOST_ENTRIES);
        let capacity = capacity as u32;
        Self {
            recency: Lists::new(Segment::COUNT),
            of_address: Lists::new(Segment::COUNT * entries),
            over_quota: Lists::with_room(Segment::COUNT * WEIGHTS, Segment::COUNT * entries),
            entries,
            quota: (capacity / QUOTA_DIVISOR).max(LEAST_QUOTA),
            reserve: capacity / RESERVE_DIVISOR,
        }
    }

    /// Makes the session at `index` the most recently served one of its segment and of its address.
    /// A session that was in another segment or at another address moves.
    pub(super) fn put(&mut self, index: u32, segment: Segment, address: Option<AddressKey>) {
        let id = RequestId(index);
        self.recency.remove(id);
        self.recency.push_back(segment as usize, id);
        if let Some(list) = self.of_address.remove(id) {
            self.update_weight(list, self.of_address.length(list) + 1);
        }
        if let Some(address) = address {
            let list = self.list(segment, address);
            self.of_address.push_back(list, id);
            self.update_weight(list, self.of_address.length(list) - 1);
        }
    }

    /// Returns the number of sessions in a segment.
    pub(super) fn length(&self, segment: Segment) -> u32 {
        self.recency.length(segment as usize)
    }

    /// Returns the session of a segment that was served longest ago; `None` if the segment is
    /// empty.
    pub(super) fn oldest(&self, segment: Segment) -> Option<u32> {
        self.recency.front(segment as usize).map(|RequestId(index)| index)
    }

    /// Returns the sessions of a segment, the most recently served one first.
    pub(super) fn youngest_first(&self, segment: Segment) -> impl Iterator<Item = u32> + '_ {
        self.recency.iter_back(segment as usize).map(|RequestId(index)| index)
    }

    /// Returns the sessions of a segment, the one served longest ago first.
    pub(super) fn iter(&self, segment: Segment) -> impl Iterator<Item = u32> + '_ {
        self.recency.iter(segment as usize).map(|RequestId(index)| index)
    }

    /// Returns the session to evict from a full table for a new session of the address `newcomer`.
    /// Returns `None` if the table holds no session.
    pub(super) fn victim(&self, newcomer: Option<AddressKey>) -> Option<Victim> {
        let fresh_go = self.length(Segment::Fresh) > self.reserve;
        let segment = if fresh_go { Segment::Fresh } else { Segment::Proven };
        let heaviest = self.heaviest(segment, newcomer);
        let RequestId(index) = match heaviest {
            Some(list) => self.of_address.front(list)?,
            None => self.recency.front(segment as usize)?,
        };
        Some(Victim { index, segment, over_quota: heaviest.is_some() })
    }

    /// Returns the list of an address that holds more than its quota, and at least half as many
    /// sessions as any other address. The address `newcomer` is preferred. Returns `None` if no
    /// address exceeds its quota.
    fn heaviest(&self, segment: Segment, newcomer: Option<AddressKey>) -> Option<usize> {
        let of_weight = |weight| self.over_quota.front(segment as usize * WEIGHTS + weight);
        let heaviest = (0..WEIGHTS).rev().find_map(of_weight)?.index();
        let weight = |list| self.weight(self.of_address.length(list));
        let own = newcomer.map(|address| self.list(segment, address));
        Some(own.filter(|own| weight(*own) == weight(heaviest)).unwrap_or(heaviest))
    }

    fn list(&self, segment: Segment, AddressKey(key): AddressKey) -> usize {
        // In the simulator keys are small numbers and not hashes, so they are mixed here.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let entry = key.wrapping_mul(MIX) >> (u64::BITS - self.entries.trailing_zeros());
        segment as usize * self.entries + entry as usize
    }

    fn weight(&self, length: u32) -> Option<usize> {
        (length > self.quota).then(|| length.ilog2() as usize)
    }

    /// Moves the list of an address to the position for its weight, if the weight has changed.
    /// `before` is the list's earlier length.
    fn update_weight(&mut self, list: usize, before: u32) {
        let weight = self.weight(self.of_address.length(list));
        if weight == self.weight(before) {
            return;
        }
        let id = RequestId(list as u32);
        self.over_quota.remove(id);
        if let Some(weight) = weight {
            self.over_quota.push_back(list / self.entries * WEIGHTS + weight, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const CAPACITY: usize = 200;
    const RESERVED: usize = CAPACITY / RESERVE_DIVISOR as usize;
    const FULL_QUOTA: usize = LEAST_QUOTA as usize;

    /// A simple reference implementation: a list of sessions, the one served longest ago first.
    #[derive(Default)]
    struct Reference(Vec<(u32, Segment, Option<AddressKey>)>);

    impl Reference {
        fn put(&mut self, index: u32, segment: Segment, address: Option<AddressKey>) {
            self.0.retain(|session| session.0 != index);
            self.0.push((index, segment, address));
        }

        fn of(
            &self,
            segment: Segment,
        ) -> impl Iterator<Item = &(u32, Segment, Option<AddressKey>)> {
            self.0.iter().filter(move |session| session.1 == segment)
        }

        fn count(&self, segment: Segment, address: Option<AddressKey>) -> usize {
            self.of(segment).filter(|session| session.2 == address).count()
        }

        fn heaviest(&self, segment: Segment) -> usize {
            let known = self.of(segment).filter(|session| session.2.is_some());
            known.map(|session| self.count(segment, session.2)).max().unwrap_or(0)
        }

        /// Asserts that the eviction rule allows this victim.
        fn allows(&self, newcomer: Option<AddressKey>, victim: Victim) {
            let fresh_go = self.of(Segment::Fresh).count() > RESERVED;
            let segment = if fresh_go { Segment::Fresh } else { Segment::Proven };
            assert_eq!(victim.segment, segment);
            let heaviest = self.heaviest(segment);
            assert_eq!(victim.over_quota, heaviest > FULL_QUOTA, "{heaviest}");
            if !victim.over_quota {
                assert_eq!(Some(victim.index), self.of(segment).next().map(|session| session.0));
                return;
            }
            let of = self.0.iter().find(|session| session.0 == victim.index);
            let address = of.expect("the victim is a session").2;
            let its = self.count(segment, address);
            assert!(its > FULL_QUOTA && its.ilog2() == heaviest.ilog2(), "{its} of {heaviest}");
            let oldest = self.of(segment).find(|session| session.2 == address);
            assert_eq!(oldest.map(|session| session.0), Some(victim.index), "its oldest");
            let own = newcomer.map_or(0, |_| self.count(segment, newcomer));
            if own > FULL_QUOTA && own.ilog2() == heaviest.ilog2() {
                assert_eq!(address, newcomer, "its own makes room");
            }
        }
    }

    #[test]
    fn the_session_that_makes_room_is_the_one_that_the_rule_names() {
        let (mut over_quota, mut within) = (0, 0);
        for seed in 0..30_u64 {
            let mut state = seed;
            let mut below = |most: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
                (state >> 33) % most
            };
            let (mut segments, mut reference) = (Segments::new(CAPACITY), Reference::default());
            let proven_share = 1 + below(9);
            for step in 0..4_000 {
                // A few addresses have most of the sessions, and some sessions have no address.
                let address = [below(3), below(10), below(100)][below(3) as usize];
                let address = (below(20) > 0).then_some(AddressKey(address));
                let proven = below(10) < proven_share;
                let mut index = step % CAPACITY as u32;
                if step >= CAPACITY as u32 {
                    index = below(CAPACITY as u64) as u32;
                    if below(2) == 0 {
                        let victim = segments.victim(address).expect("the table is full");
                        reference.allows(address, victim);
                        over_quota += u32::from(victim.over_quota);
                        within += u32::from(!victim.over_quota);
                        index = victim.index;
                    }
                }
                let segment = if proven { Segment::Proven } else { Segment::Fresh };
                segments.put(index, segment, address);
                reference.put(index, segment, address);
                for segment in [Segment::Fresh, Segment::Proven] {
                    let indices = reference.of(segment).map(|session| session.0);
                    assert!(segments.iter(segment).eq(indices), "seed {seed}, step {step}");
                }
            }
        }
        assert!(over_quota > 1_000 && within > 1_000, "{over_quota}, {within}");
    }

    #[test]
    fn addresses_of_this_test_do_not_share_an_entry() {
        let segments = Segments::new(CAPACITY);
        let list = |address| segments.list(Segment::Fresh, AddressKey(address));
        let mut lists: Vec<usize> = (0..100).map(list).collect();
        lists.sort_unstable();
        lists.dedup();
        assert_eq!(lists.len(), 100);
    }
}
