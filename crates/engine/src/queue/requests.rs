//! The engine's table of requests by number: which wait, which run, and for which holders.

use alloc::vec::Vec;

use bywash_units::{Ratio, Time};

use super::{Holder, Holders, Waiting};
use crate::lists::Lists;
use crate::request::{RequestId, Standing};

/// The state of a request number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The number is not in use.
    Free,
    /// The request waits for a slot.
    Waiting,
    /// The request has had a slot since this time.
    Running(Time),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    waiting: Waiting,
    state: State,
    /// Whether the response has begun.
    is_answered: bool,
}

/// The share of the slots that requests of new sessions with incomplete bodies may hold.
const UNFINISHED: Ratio = Ratio::new(0.5);

/// Counts of requests of new sessions whose bodies have not been received completely.
#[derive(Debug, Default)]
struct Unfinished {
    waiting: u32,
    running: u32,
    /// The number of them that may run.
    most: u32,
}

/// The engine's table of requests by number, and the lists of those that wait.
///
/// A number whose state is `Waiting` is in both lists once it has entered the queue. Any other
/// number is in neither.
#[derive(Debug)]
pub(crate) struct Requests {
    entries: Vec<Entry>,
    pub(super) arrivals: Lists,
    pub(super) by_class: Lists,
    /// The running requests that can be stopped, in a list per class and standing, in the order in
    /// which they started.
    cancellable: Lists,
    /// The numbers of waiting and of running requests of each holder.
    pub(super) holders: Holders,
    /// The concurrency limit at the time at which a slot was last given.
    pub(super) slots: u32,
    unfinished: Unfinished,
    /// The time until which requests of unknown holders wait behind the others.
    attacked: Time,
}

impl Requests {
    pub(crate) fn new(classes: usize) -> Self {
        Self {
            entries: Vec::new(),
            arrivals: Lists::new(1),
            by_class: Lists::new(classes),
            cancellable: Lists::new(classes * Standing::COUNT),
            holders: Holders::new(),
            slots: 0,
            unfinished: Unfinished::default(),
            attacked: Time::ZERO,
        }
    }

    /// Notes a request under a number that is not in use.
    pub(crate) fn arrive(&mut self, id: RequestId, waiting: Waiting) {
        let entry = Entry { waiting, state: State::Waiting, is_answered: false };
        if id.index() >= self.entries.len() {
            self.entries.resize(id.index() + 1, Entry { state: State::Free, ..entry });
            // Make room now: a number may run as a request that can be stopped for the first time
            // long after its first use.
            self.cancellable.make_room(self.entries.len());
        }
        debug_assert_eq!(self.entries[id.index()].state, State::Free, "{id:?} is in use");
        self.entries[id.index()] = entry;
    }

    /// Returns the facts about a request whose number is in use.
    pub(crate) fn waiting(&self, id: RequestId) -> &Waiting {
        &self.entries[id.index()].waiting
    }

    pub(crate) fn state(&self, id: RequestId) -> State {
        self.entries.get(id.index()).map_or(State::Free, |entry| entry.state)
    }

    pub(crate) fn set(&mut self, id: RequestId, state: State) {
        self.entries[id.index()].state = state;
    }

    /// Puts a request into the queue.
    pub(crate) fn enter_queue(&mut self, id: RequestId) {
        self.arrivals.push_back(0, id);
        let Waiting { class, holder, .. } = self.entries[id.index()].waiting;
        self.by_class.push_back(class.index(), id);
        self.holders.waits(holder);
        self.unfinished.waiting += u32::from(self.waiting(id).unfinished);
    }

    /// Empties the queue for a scheduler that knows `classes` classes. Returns the requests that
    /// waited, oldest first.
    pub(crate) fn empty_queue(&mut self, classes: usize) -> Vec<RequestId> {
        let waiting: Vec<RequestId> = self.arrivals.iter(0).collect();
        for id in &waiting {
            self.leave_queue(*id);
        }
        self.by_class.grow(classes);
        self.cancellable.grow(classes * Standing::COUNT);
        waiting
    }

    /// Notes that a running request can be stopped from now on.
    pub(crate) fn can_be_stopped(&mut self, id: RequestId) {
        let Waiting { stops_as, standing, .. } = self.entries[id.index()].waiting;
        self.cancellable.push_back(stops_as.index() * Standing::COUNT + standing.index(), id);
    }

    /// Notes that the response to a request has begun. The request cannot be stopped any more.
    pub(crate) fn answer_begins(&mut self, id: RequestId) {
        self.entries[id.index()].is_answered = true;
        self.cannot_be_stopped(id);
    }

    /// Returns whether the response to a request has begun.
    pub(crate) fn is_answered(&self, id: RequestId) -> bool {
        self.entries[id.index()].is_answered
    }

    /// Notes that a request cannot be stopped any more.
    pub(crate) fn cannot_be_stopped(&mut self, id: RequestId) {
        self.cancellable.remove(id);
    }

    /// Returns whether there is a request that can be stopped.
    pub(crate) const fn can_stop(&self) -> bool {
        self.cancellable.total() > 0
    }

    /// Returns the request of a class that can be stopped, has proven no more than `most`, and has
    /// run longest, with the time at which it started.
    pub(crate) fn longest(&self, class: usize, most: Standing) -> Option<(RequestId, Time)> {
        // Better standings come first.
        let standings = most.index()..Standing::COUNT;
        let ids = standings.filter_map(|s| self.cancellable.front(class * Standing::COUNT + s));
        let running = ids.filter_map(|id| match self.state(id) {
            State::Running(since) => Some((id, since)),
            State::Free | State::Waiting => None,
        });
        running.min_by_key(|(_, since)| *since)
    }

    /// Removes a request from the queue, if it is in it.
    pub(crate) fn leave_queue(&mut self, id: RequestId) {
        if self.arrivals.remove(id).is_some() {
            self.by_class.remove(id);
            self.holders.waits_no_longer(self.entries[id.index()].waiting.holder);
            self.unfinished.waiting -= u32::from(self.waiting(id).unfinished);
        }
    }

    /// Notes that a request holds a slot from now on.
    pub(crate) fn run(&mut self, now: Time, id: RequestId) {
        self.set(id, State::Running(now));
        self.holders.runs(self.entries[id.index()].waiting.holder);
        self.unfinished.running += u32::from(self.waiting(id).unfinished);
    }

    /// Notes that a request has given its slot back.
    pub(crate) fn end(&mut self, id: RequestId) {
        self.set(id, State::Free);
        self.holders.runs_no_longer(self.entries[id.index()].waiting.holder);
        self.unfinished.running -= u32::from(self.waiting(id).unfinished);
    }

    /// Returns the number of requests that hold a slot for the same holder as this one.
    pub(crate) fn running_of_holder(&self, id: RequestId) -> u32 {
        self.holders.running(self.entries[id.index()].waiting.holder)
    }

    /// Notes that a client has taken its answer at once. This counts for its session and for its
    /// address.
    pub(crate) fn took_answer(&mut self, now: Time, id: RequestId) {
        for holder in self.holders_of(id) {
            self.holders.took_answer(now, holder);
        }
    }

    /// Notes that a request was stopped because its client was slow.
    pub(crate) fn was_slow(&mut self, now: Time, id: RequestId) {
        for holder in self.holders_of(id) {
            self.holders.was_slow(now, holder);
        }
    }

    /// Returns the holder of a request, and its address if that is not the holder.
    fn holders_of(&self, id: RequestId) -> [Option<Holder>; 2] {
        let Waiting { holder, address, .. } = self.entries[id.index()].waiting;
        [holder, address.filter(|_| address != holder)]
    }

    /// Lets requests of unknown holders wait behind the others until `then`.
    pub(crate) fn is_attacked_until(&mut self, then: Time) {
        self.attacked = self.attacked.max(then);
    }

    /// Returns whether more unfinished requests wait than may run.
    pub(crate) const fn has_crowd_of_uploads(&self) -> bool {
        self.unfinished_is_full() && self.unfinished.waiting > self.unfinished.most
    }

    /// Returns whether requests of unknown holders wait behind the others now.
    pub(super) fn is_attacked(&self, now: Time) -> bool {
        now < self.attacked
    }

    /// Returns whether the behaviour of holders' clients matters now: some may be slow, or there is
    /// an attack.
    pub(super) fn looks_at_holders(&self, now: Time) -> bool {
        self.is_attacked(now) || self.holders.may_be_slow(now)
    }

    /// Notes that a request was refused. The holder's entry is updated only while that matters,
    /// because each access to the table of holders may miss the cache.
    pub(crate) fn was_refused(&mut self, now: Time, id: RequestId) {
        if !self.looks_at_holders(now) {
            return;
        }
        self.holders.was_refused(now, self.entries[id.index()].waiting.holder);
    }

    /// Sets how many requests may run at once. Unfinished ones may hold half of the slots, or
    /// `slow_share` if that is more, but at least one.
    pub(crate) fn has_slots(&mut self, slots: u32, slow_share: Ratio) {
        self.slots = slots;
        let share = slow_share.get().max(UNFINISHED.get());
        self.unfinished.most = ((f64::from(slots) * share) as u32).max(1);
    }

    /// Notes that a running request is no longer unfinished.
    pub(crate) fn finishes_body(&mut self, id: RequestId) {
        if let State::Running(_) = self.state(id) {
            let waiting = &mut self.entries[id.index()].waiting;
            self.unfinished.running -= u32::from(core::mem::take(&mut waiting.unfinished));
        }
    }

    /// Returns whether unfinished requests hold as many slots as they may.
    pub(crate) const fn unfinished_is_full(&self) -> bool {
        self.unfinished.running >= self.unfinished.most
    }

    /// Returns whether unfinished requests wait that may not run.
    pub(crate) const fn has_blocked_uploads(&self) -> bool {
        self.unfinished_is_full() && self.unfinished.waiting > 0
    }

    /// Returns whether a waiting request may have a slot if one is free.
    pub(crate) fn may_run(&self, id: RequestId) -> bool {
        !self.waiting(id).unfinished || !self.unfinished_is_full()
    }

    /// Returns whether any waiting request may have a slot.
    pub(crate) const fn wants_slot(&self) -> bool {
        let waiting = self.arrivals.total();
        waiting > self.unfinished.waiting as usize || waiting > 0 && !self.unfinished_is_full()
    }
}
