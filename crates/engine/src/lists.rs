//! Doubly linked lists over request numbers, on which every queue is built.
//!
//! A number is in no list or in exactly one list of the set. If it is in none, its `list` is `NONE`
//! and its other fields mean nothing. The links are indices into one array, so the removal of a
//! request from the middle takes four stores. Nothing is allocated once the array is as long as the
//! highest number.

use alloc::vec;
use alloc::vec::Vec;
use core::iter::successors;

use crate::request::RequestId;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    list: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    front: u32,
    back: u32,
    length: u32,
}

/// A set of lists. Each request is in at most one of them.
#[derive(Debug)]
pub(crate) struct Lists {
    links: Vec<Link>,
    ends: Vec<Ends>,
    length: usize,
}

const EMPTY: Ends = Ends { front: NONE, back: NONE, length: 0 };

impl Lists {
    /// Creates a set of `lists` empty lists.
    pub(crate) fn new(lists: usize) -> Self {
        Self { links: Vec::new(), ends: vec![EMPTY; lists], length: 0 }
    }

    /// Creates `lists` empty lists with room for the numbers below `most`, so that nothing is
    /// allocated later.
    pub(crate) fn with_room(lists: usize, most: usize) -> Self {
        Self { links: Vec::with_capacity(most), ..Self::new(lists) }
    }

    /// Adds empty lists until the set has at least `lists`.
    pub(crate) fn grow(&mut self, lists: usize) {
        self.ends.resize(self.ends.len().max(lists), EMPTY);
    }

    /// Makes room for the numbers below `most`, so that adding one of them allocates nothing.
    pub(crate) fn make_room(&mut self, most: usize) {
        self.links.reserve(most.saturating_sub(self.links.len()));
    }

    /// Returns the total number of requests in all lists.
    pub(crate) const fn total(&self) -> usize {
        self.length
    }

    /// Returns the number of requests in the list with this index.
    pub(crate) fn length(&self, list: usize) -> u32 {
        self.ends[list].length
    }

    /// Returns the request that entered this list first; `None` if the list is empty.
    pub(crate) fn front(&self, list: usize) -> Option<RequestId> {
        some(self.ends[list].front)
    }

    /// Returns the request that entered this list last; `None` if the list is empty.
    pub(crate) fn back(&self, list: usize) -> Option<RequestId> {
        some(self.ends[list].back)
    }

    /// Returns the requests of this list, from front to back.
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = RequestId> + '_ {
        successors(self.front(list), |id| some(self.links[id.index()].after))
    }

    /// Returns the requests of this list, from back to front.
    pub(crate) fn iter_back(&self, list: usize) -> impl Iterator<Item = RequestId> + '_ {
        successors(self.back(list), |id| some(self.links[id.index()].before))
    }

    /// Appends `id` to the back of a list.
    ///
    /// # Panics
    /// Panics if `id` is in a list already. That would break an invariant of the engine, so the
    /// check is made in production, too.
    pub(crate) fn push_back(&mut self, list: usize, id: RequestId) {
        if id.index() >= self.links.len() {
            let free = Link { before: NONE, after: NONE, list: NONE };
            self.links.resize(id.index() + 1, free);
        }
        assert_eq!(self.links[id.index()].list, NONE, "a request is in one list at a time");
        let back = self.ends[list].back;
        self.links[id.index()] = Link { before: back, after: NONE, list: list as u32 };
        match some(back) {
            Some(before) => self.links[before.index()].after = id.0,
            None => self.ends[list].front = id.0,
        }
        self.ends[list].back = id.0;
        self.ends[list].length += 1;
        self.length += 1;
    }

    /// Removes `id` from its list. Returns the index of that list; `None` if `id` was in no list.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<usize> {
        let link = self.links.get_mut(id.index()).filter(|link| link.list != NONE)?;
        let Link { before, after, list } = *link;
        link.list = NONE;
        let ends = &mut self.ends[list as usize];
        match some(before) {
            Some(before) => self.links[before.index()].after = after,
            None => ends.front = after,
        }
        match some(after) {
            Some(after) => self.links[after.index()].before = before,
            None => ends.back = before,
        }
        ends.length -= 1;
        self.length -= 1;
        Some(list as usize)
    }
}

const fn some(number: u32) -> Option<RequestId> {
    if number == NONE { None } else { Some(RequestId(number)) }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use super::*;

    /// Checks a few thousand random operations against plain deques.
    #[test]
    fn lists_behave_like_deques() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (seed >> 33) % below
        };
        let mut lists = Lists::new(3);
        let mut model: [VecDeque<u32>; 3] = core::array::from_fn(|_| VecDeque::new());
        for step in 0..20_000 {
            let id = random(40) as u32;
            if model.iter().any(|list| list.contains(&id)) {
                let was = model.iter().position(|list| list.contains(&id));
                for list in &mut model {
                    list.retain(|other| *other != id);
                }
                assert_eq!(lists.remove(RequestId(id)), was, "step {step}");
            } else {
                assert_eq!(lists.remove(RequestId(id)), None, "step {step}");
                let list = random(3) as usize;
                model[list].push_back(id);
                lists.push_back(list, RequestId(id));
            }
            for (list, expected) in model.iter().enumerate() {
                assert_eq!(lists.front(list).map(|id| id.0), expected.front().copied());
                assert_eq!(lists.back(list).map(|id| id.0), expected.back().copied());
                assert_eq!(lists.length(list) as usize, expected.len(), "step {step}");
                assert!(lists.iter(list).map(|id| id.0).eq(expected.iter().copied()));
            }
        }
    }
}
