//! The engine's table of requests by number: which requests wait, which run, and for which holders.

use alloc::vec::Vec;

use bywash_units::{Ratio, Time};

use super::{Holder, Holders, Waiting};
use crate::lists::Lists;
use crate::population::Populations;
use crate::request::{RequestId, Standing};

/// The state of a request number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The number is not in use.
    Free,
    /// The request waits for a slot.
    Waiting,
    /// The request has held a slot since this time.
    Running(Time),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    waiting: Waiting,
    state: State,
    /// Whether the response to the request has begun.
    is_answered: bool,
}

/// The share of the slots that unfinished requests together may hold. If `slow_share` is more, it
/// counts instead.
const UNFINISHED: Ratio = Ratio::new(0.5);

/// The counts of unfinished requests: those of new sessions whose bodies have not been received
/// completely.
#[derive(Debug, Default)]
struct Unfinished {
    waiting: u32,
    running: u32,
    /// The maximum number of unfinished requests that may run.
    most: u32,
}

/// The engine's table of requests by number, with the lists of the waiting ones.
///
/// A request that waits in the queue is in both lists, by arrival and by class. No other request is
/// in them.
#[derive(Debug)]
pub(crate) struct Requests {
    entries: Vec<Entry>,
    pub(super) arrivals: Lists,
    pub(super) by_class: Lists,
    /// The running requests that can be stopped. Each pair of class and standing has a list, in the
    /// order in which the requests started.
    cancellable: Lists,
    /// The table of holders: how many requests each has waiting and running, and how its clients
    /// behaved.
    pub(super) holders: Holders,
    /// The populations of clients, and their lifts.
    pub(crate) populations: Populations,
    /// The number of slots when a slot was last given.
    pub(super) slots: u32,
    unfinished: Unfinished,
    /// The time until which requests of unknown holders wait behind those of known ones.
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
            populations: Populations::new(),
            slots: 0,
            unfinished: Unfinished::default(),
            attacked: Time::ZERO,
        }
    }

    /// Adds a request under a number that is not in use.
    pub(crate) fn arrive(&mut self, id: RequestId, waiting: Waiting) {
        let entry = Entry { waiting, state: State::Waiting, is_answered: false };
        if id.index() >= self.entries.len() {
            self.entries.resize(id.index() + 1, Entry { state: State::Free, ..entry });
            // Make room now, so that `mark_stoppable` never allocates. It may need the room long
            // after the number was first used.
            self.cancellable.make_room(self.entries.len());
        }
        debug_assert_eq!(self.entries[id.index()].state, State::Free, "{id:?} is in use");
        self.entries[id.index()] = entry;
    }

    /// Returns the facts about a request. Its number must be in use.
    pub(crate) fn waiting(&self, id: RequestId) -> &Waiting {
        &self.entries[id.index()].waiting
    }

    pub(crate) fn state(&self, id: RequestId) -> State {
        self.entries.get(id.index()).map_or(State::Free, |entry| entry.state)
    }

    pub(crate) fn set(&mut self, id: RequestId, state: State) {
        self.entries[id.index()].state = state;
    }

    /// Adds a request to the lists of the queue.
    pub(crate) fn enter_queue(&mut self, id: RequestId) {
        self.arrivals.push_back(0, id);
        let Waiting { class, holder, .. } = self.entries[id.index()].waiting;
        self.by_class.push_back(class.index(), id);
        self.holders.add_waiting(holder);
        self.unfinished.waiting += u32::from(self.waiting(id).unfinished);
    }

    /// Empties the queue, for a scheduler that knows `classes` classes. Returns the requests that
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
    pub(crate) fn mark_stoppable(&mut self, id: RequestId) {
        let Waiting { stops_as, standing, .. } = self.entries[id.index()].waiting;
        self.cancellable.push_back(stops_as.index() * Standing::COUNT + standing.index(), id);
    }

    /// Notes that the response to a request has begun, so that the request cannot be stopped any
    /// more.
    pub(crate) fn note_answer_begun(&mut self, id: RequestId) {
        self.entries[id.index()].is_answered = true;
        self.mark_unstoppable(id);
    }

    /// Returns whether the response to a request has begun.
    pub(crate) fn is_answered(&self, id: RequestId) -> bool {
        self.entries[id.index()].is_answered
    }

    /// Notes that a running request cannot be stopped any more.
    pub(crate) fn mark_unstoppable(&mut self, id: RequestId) {
        self.cancellable.remove(id);
    }

    /// Returns whether any running request can be stopped.
    pub(crate) const fn can_stop(&self) -> bool {
        self.cancellable.total() > 0
    }

    /// Returns the running request of a class that can be stopped and has run longest, with its
    /// start. Only requests whose standing is `most` or worse are considered.
    pub(crate) fn longest(&self, class: usize, most: Standing) -> Option<(RequestId, Time)> {
        // Better standings have lower indices.
        let standings = most.index()..Standing::COUNT;
        let ids = standings.filter_map(|s| self.cancellable.front(class * Standing::COUNT + s));
        let running = ids.filter_map(|id| match self.state(id) {
            State::Running(since) => Some((id, since)),
            State::Free | State::Waiting => None,
        });
        running.min_by_key(|(_, since)| *since)
    }

    /// Removes a request from the lists of the queue. Does nothing if it is not in them.
    pub(crate) fn leave_queue(&mut self, id: RequestId) {
        if self.arrivals.remove(id).is_some() {
            self.by_class.remove(id);
            self.holders.remove_waiting(self.entries[id.index()].waiting.holder);
            self.unfinished.waiting -= u32::from(self.waiting(id).unfinished);
        }
    }

    /// Notes that a request holds a slot from `now` on.
    pub(crate) fn run(&mut self, now: Time, id: RequestId) {
        self.set(id, State::Running(now));
        self.holders.add_running(self.entries[id.index()].waiting.holder);
        self.unfinished.running += u32::from(self.waiting(id).unfinished);
    }

    /// Notes that a request has given its slot back.
    pub(crate) fn end(&mut self, id: RequestId) {
        self.set(id, State::Free);
        self.holders.remove_running(self.entries[id.index()].waiting.holder);
        self.unfinished.running -= u32::from(self.waiting(id).unfinished);
    }

    /// Returns the number of running requests of this request's holder.
    pub(crate) fn running_of_holder(&self, id: RequestId) -> u32 {
        self.holders.running(self.entries[id.index()].waiting.holder)
    }

    /// Notes that a client has read its answer without delay. The note counts for the request's
    /// session and for its address.
    pub(crate) fn note_prompt_read(&mut self, now: Time, id: RequestId) {
        for holder in self.holders_of(id) {
            self.holders.note_prompt_read(now, holder);
        }
    }

    /// Notes that a request was stopped because its client was slow. The note counts for the
    /// request's session and for its address.
    pub(crate) fn was_slow(&mut self, now: Time, id: RequestId) {
        for holder in self.holders_of(id) {
            self.holders.was_slow(now, holder);
        }
    }

    /// Returns the holder of a request, and its address as a second holder if that is another one.
    fn holders_of(&self, id: RequestId) -> [Option<Holder>; 2] {
        let Waiting { holder, address, .. } = self.entries[id.index()].waiting;
        [holder, address.filter(|_| address != holder)]
    }

    /// Makes requests of unknown holders wait behind those of known ones until the time `then`.
    /// Does nothing if they already wait for longer.
    pub(crate) fn extend_attack(&mut self, then: Time) {
        self.attacked = self.attacked.max(then);
    }

    /// Returns whether more unfinished requests wait than may run at once.
    pub(crate) const fn has_crowd_of_uploads(&self) -> bool {
        self.unfinished_is_full() && self.unfinished.waiting > self.unfinished.most
    }

    /// Returns whether requests of unknown holders wait behind those of known ones now.
    pub(super) fn is_attacked(&self, now: Time) -> bool {
        now < self.attacked
    }

    /// Returns whether the behaviour of clients matters now: some holder may be slow, or there is
    /// an attack.
    pub(super) fn considers_holders(&self, now: Time) -> bool {
        self.is_attacked(now) || self.holders.may_be_slow(now)
    }

    /// Notes that a request was refused. This is recorded only while the behaviour of clients
    /// matters, because each access to the table of holders may miss the cache.
    pub(crate) fn note_refusal(&mut self, now: Time, id: RequestId) {
        if !self.considers_holders(now) {
            return;
        }
        self.holders.note_refusal(now, self.entries[id.index()].waiting.holder);
    }

    /// Sets the number of slots. Unfinished requests may hold half of them, or the fraction
    /// `slow_share` if that is more, but at least one.
    pub(crate) fn set_slots(&mut self, slots: u32, slow_share: Ratio) {
        self.slots = slots;
        let share = slow_share.get().max(UNFINISHED.get());
        self.unfinished.most = ((f64::from(slots) * share) as u32).max(1);
    }

    /// Notes that the body of a running request is now complete.
    pub(crate) fn note_body_complete(&mut self, id: RequestId) {
        if let State::Running(_) = self.state(id) {
            let waiting = &mut self.entries[id.index()].waiting;
            self.unfinished.running -= u32::from(core::mem::take(&mut waiting.unfinished));
        }
    }

    /// Returns whether unfinished requests hold their maximum number of slots.
    pub(crate) const fn unfinished_is_full(&self) -> bool {
        self.unfinished.running >= self.unfinished.most
    }

    /// Returns whether unfinished requests wait because others already hold the maximum number of
    /// slots for unfinished requests.
    pub(crate) const fn has_blocked_uploads(&self) -> bool {
        self.unfinished_is_full() && self.unfinished.waiting > 0
    }

    /// Returns whether a waiting request may get a slot that is free.
    pub(crate) fn may_run(&self, id: RequestId) -> bool {
        !self.waiting(id).unfinished || !self.unfinished_is_full()
    }

    /// Returns whether any waiting request may get a slot that is free.
    pub(crate) const fn wants_slot(&self) -> bool {
        let waiting = self.arrivals.total();
        waiting > self.unfinished.waiting as usize || waiting > 0 && !self.unfinished_is_full()
    }
}
