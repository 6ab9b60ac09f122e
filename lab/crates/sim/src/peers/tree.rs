//! HAProxy's queue: one tree ordered by priority class and then by time, from which the first
//! request is taken.
//!
//! Source: HAProxy 2.6.12, `src/queue.c`, and tests with the running program. The key of a request
//! is computed once, when the request is queued, and never updated. It consists of `class`, then 20
//! bits of `now + offset` in milliseconds. The time is cyclic with a period of 1,048,576 ms; a time
//! less than half a period back counts as earlier. An order by offsets therefore holds only within
//! some minutes. A scheme that relies on offsets fails whenever the offsets jump.

use std::collections::{BTreeMap, HashMap};

use bywash_engine::queue::{Push, QueueView, Scheduler};
use bywash_engine::{Reason, RequestId};
use bywash_units::{Time, TimeSpan};

/// The period of the time in a key, in milliseconds. A time counts as past if it is at most half a
/// period ([`LOOK_BACK`]) earlier than the present time.
const PERIOD: i64 = 1 << 20;
const LOOK_BACK: i64 = 1 << 19;

/// The rules by which a configuration of HAProxy queues requests.
pub(super) trait Rules: Send {
    /// Records the arrival of a request, whether or not the request finds a free slot.
    fn on_arrival(&mut self, moment: &QueueView<'_>, id: RequestId) {
        let _ = (moment, id);
    }

    /// Returns the priority class and the offset in milliseconds for a request to be queued; `None`
    /// refuses the request.
    fn queue(&mut self, moment: &QueueView<'_>, id: RequestId) -> Option<(u16, i64)>;

    /// Records that a queued request no longer waits.
    fn on_departure(&mut self, moment: &QueueView<'_>, id: RequestId) {
        let _ = (moment, id);
    }

    /// Returns whether, in some priority class, the newest request goes first at present.
    fn lifo(&self) -> bool {
        false
    }
}

/// A backend of HAProxy that queues by the rules `R`, with its `timeout queue`.
#[derive(Debug)]
pub(super) struct Backend<R> {
    rules: R,
    tree: Tree,
    timeout: TimeSpan,
}

impl<R: Rules> Backend<R> {
    pub(super) fn new(rules: R, timeout: TimeSpan) -> Self {
        Self { rules, tree: Tree::default(), timeout }
    }
}

impl<R: Rules> Scheduler for Backend<R> {
    /// Passes a request that finds a free slot to the rules. Such a request is never refused.
    fn reject(&mut self, moment: &QueueView<'_>, id: RequestId) -> Option<Reason> {
        self.rules.on_arrival(moment, id);
        None
    }

    fn push(&mut self, moment: &QueueView<'_>, id: RequestId) -> Push {
        self.rules.on_arrival(moment, id);
        let Some((class, offset)) = self.rules.queue(moment, id) else {
            return Push::Refused(Reason::QueueFull);
        };
        self.tree.insert(moment.now, id, class, offset);
        Push::Queued
    }

    /// Returns a request that has waited longer than `timeout queue`; `None` if there is none.
    /// HAProxy has a timer for each request. Here such requests are removed when the next slot is
    /// assigned, which is later by the service time of one request at most.
    fn discard(&mut self, moment: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let late = moment.oldest().filter(|id| moment.age(*id) > self.timeout)?;
        self.remove(moment, late);
        Some((late, Reason::WaitedTooLong))
    }

    fn pop(&mut self, moment: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let first = self.tree.first(moment.now)?;
        self.remove(moment, first);
        Some((first, Reason::Best))
    }

    fn remove(&mut self, moment: &QueueView<'_>, id: RequestId) {
        self.tree.remove(id);
        self.rules.on_departure(moment, id);
    }

    fn lifo(&self) -> bool {
        self.rules.lifo()
    }
}

/// The tree of waiting requests, by class and time.
#[derive(Debug, Default)]
struct Tree {
    waiting: BTreeMap<Key, RequestId>,
    keys: HashMap<RequestId, Key>,
    queued: u64,
}

/// The position of a request in the tree; a lower key comes first. Requests with equal times keep
/// the order in which they were queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    class: u16,
    time: i64,
    queued: u64,
}

impl Tree {
    /// Queues request `id` as HAProxy does with `set-priority-class` and `set-priority-offset`.
    fn insert(&mut self, now: Time, id: RequestId, class: u16, offset: i64) {
        self.queued += 1;
        let time = (milliseconds(now) + offset).rem_euclid(PERIOD);
        let key = Key { class, time, queued: self.queued };
        self.waiting.insert(key, id);
        self.keys.insert(id, key);
    }

    /// Returns the first request of the lowest priority class; `None` if no request waits. Within
    /// the class, the first request is the one with the earliest time that is at most half a period
    /// before `now`. If no request of the class has such a time, it is the request with the
    /// smallest time value.
    fn first(&self, now: Time) -> Option<RequestId> {
        let (best, first) = self.waiting.first_key_value()?;
        let time = (milliseconds(now) - LOOK_BACK).rem_euclid(PERIOD);
        let from = Key { time, queued: 0, ..*best };
        let later = self.waiting.range(from..).next().filter(|(key, _)| key.class == best.class);
        Some(later.map_or(*first, |(_, id)| *id))
    }

    /// Removes the request `id` from the tree.
    fn remove(&mut self, id: RequestId) {
        if let Some(key) = self.keys.remove(&id) {
            self.waiting.remove(&key);
        }
    }
}

fn milliseconds(now: Time) -> i64 {
    (now.as_nanos() / 1_000_000).cast_signed()
}

/// Returns an offset with which the newest request goes first: `date(0,ms),mod(262144),mul(-2)`.
/// The offset jumps back to 0 every 262 s. Requests queued before the jump then go before those
/// that arrive after it.
pub(super) fn lifo_offset(now: Time) -> i64 {
    milliseconds(now) % 262_144 * -2
}
