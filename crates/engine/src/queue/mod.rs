//! Which waiting request gets the next slot.
//!
//! One policy is one file with one type that is an [`Order`]. The catalogue lists them; nothing
//! else knows their names. Every operation, the removal of a request from the middle included, is
//! O(1) in the number of requests that wait (and at most linear in the number of classes, ≤ 64),
//! and allocates only while the number of requests at once grows beyond what was seen before.

mod by_class;
mod departures;
mod floor;
mod holders;
mod lists;
mod principals;
mod ranked;
mod session_first;
mod single;
mod value_index;

use alloc::vec::Vec;

use bywash_units::{Share, Span, Time};

pub use by_class::ByClass;
pub(crate) use floor::Floor;
pub(crate) use holders::{Holder, Holders, Trust};
pub(crate) use lists::Lists;
pub use principals::Principal;
pub(crate) use principals::Principals;
pub use session_first::session_first;
pub use single::Single;
pub use value_index::value_index;

use crate::event::{Meter, Reading};
use crate::reason::Reason;
use crate::request::{AttemptKey, ClassId, RequestId, Signals, Standing};
use crate::value::Values;

/// A request that waits, as far as an order may use it.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its class.
    pub class: ClassId,
    /// The class by whose bounds it is stopped while it runs: its own, but where its path can be
    /// read in more than one way.
    pub stops_as: ClassId,
    /// What its session has proven.
    pub standing: Standing,
    /// Whether it claims a session, proven or not.
    pub claims_session: bool,
    /// What it, or the first request of its session, showed of its visitor.
    pub signals: Signals,
    /// Whether it repeats one that was not answered.
    pub repeats: Repeats,
    /// What to know its repetition by.
    pub attempt: Option<AttemptKey>,
    /// Who is charged for it, if anybody can be.
    pub principal: Option<Principal>,
    /// For whom it holds a slot while it runs, if that is known.
    pub(crate) holder: Option<Holder>,
    /// Its address as a holder, if that is known.
    pub(crate) address: Option<Holder>,
    /// It is a stranger's, and its body has not come as a whole.
    pub(crate) unfinished: bool,
    /// Its driver would stop it while it runs.
    pub stoppable: bool,
    /// Since when it waits.
    pub since: Time,
}

/// Where a request ranks because of how the clients of its holder have behaved ([`Trust`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Behaved {
    /// Where its class and its session rank.
    Well,
    /// Behind those: nothing is known of it, and slow clients hold the slots at present.
    Unknown,
    /// Behind those, as it comes again and again although it is refused.
    Insistent,
    /// Behind all others.
    Slowly,
}

/// Whether a request repeats one that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Nothing says so.
    No,
    /// The same was lost a short while ago.
    Seen,
    /// It says so itself.
    Declared,
}

/// What an order sees when it is asked.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The time.
    pub now: Time,
    /// Mean service time of late; zero while unknown.
    pub mean_service: Span,
    /// What requests are worth, as far as it was learned.
    pub values: &'a Values,
    pub(crate) requests: &'a Requests,
}

impl Moment<'_> {
    /// What is known of a waiting request.
    pub fn waiting(&self, id: RequestId) -> &Waiting {
        self.requests.waiting(id)
    }

    /// How long it has waited.
    pub fn age(&self, id: RequestId) -> Span {
        self.now.since(self.waiting(id).since)
    }

    /// How many wait.
    pub fn length(&self) -> usize {
        self.requests.arrivals.total()
    }

    /// The request that has waited longest.
    pub fn oldest(&self) -> Option<RequestId> {
        self.requests.arrivals.front(0)
    }

    /// The request that came last.
    pub fn newest(&self) -> Option<RequestId> {
        self.requests.arrivals.back(0)
    }

    /// How many of a class wait.
    pub fn length_of(&self, class: usize) -> u32 {
        self.requests.by_class.length(class)
    }

    /// The request of a class that has waited longest.
    pub fn oldest_of(&self, class: usize) -> Option<RequestId> {
        self.requests.by_class.front(class)
    }

    /// The requests of a class that wait, in the order in which they came.
    pub fn of_class(&self, class: usize) -> impl Iterator<Item = RequestId> + '_ {
        self.requests.by_class.iter(class)
    }

    /// Whether the holder of a waiting request runs at least this share of the slots (two slots at
    /// the least) while requests of other holders wait.
    pub(crate) fn exceeds_share(&self, id: RequestId, share: Share) -> bool {
        let Requests { holders, slots, .. } = self.requests;
        let holder = self.waiting(id).holder;
        let most = ((f64::from(*slots) * share.get()) as u32).max(2);
        holders.running(holder) >= most && self.length() > holders.waiting(holder) as usize
    }

    /// Whether a waiting request may have a slot if one is free.
    pub(crate) fn may_run(&self, id: RequestId) -> bool {
        self.requests.may_run(id)
    }

    /// Whether unfinished requests hold as many slots as they may.
    pub(crate) fn unfinished_is_full(&self) -> bool {
        self.requests.unfinished_is_full()
    }

    /// Where a request ranks because of how the clients of its holder have behaved.
    pub(crate) fn behaved(&self, waiting: &Waiting) -> Behaved {
        if !self.requests.looks_at_holders(self.now) {
            return Behaved::Well;
        }
        let (is_new, attacked) = (waiting.standing == Standing::New, self.is_attacked());
        match self.requests.holders.trust(self.now, waiting.holder) {
            Trust::Slow if is_new => Behaved::Slowly,
            // A session that has proven itself loses what it is ahead of strangers, and no more.
            Trust::Slow => Behaved::Unknown,
            Trust::Unknown if is_new && attacked => Behaved::Unknown,
            Trust::Insistent if is_new && attacked => Behaved::Insistent,
            Trust::Known | Trust::Unknown | Trust::Insistent => Behaved::Well,
        }
    }

    /// Whether many slow clients were stopped of late.
    pub(crate) fn is_attacked(&self) -> bool {
        self.requests.is_attacked(self.now)
    }

    /// The request of a class that came last.
    pub fn newest_of(&self, class: usize) -> Option<RequestId> {
        self.requests.by_class.back(class)
    }
}

/// What becomes of a request that asks to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// It waits.
    Queued,
    /// It does not, for this reason.
    Refused(Reason),
    /// It waits, and this one, which was worse, no longer does, for this reason.
    PushedOut(RequestId, Reason),
}

/// A policy that orders waiting requests.
///
/// The engine keeps who waits, by arrival and by class, and shows it in the [`Moment`]; an order
/// keeps only what it needs beyond that. A request that is pushed is not in the moment yet, one
/// that is removed still is.
pub trait Order: Send {
    /// A request has come while a slot is free: why it is not to have it, if so. It is shed. An
    /// order that only decides who is next refuses nobody here; an admission control may.
    fn turn_away(&mut self, moment: &Moment<'_>, id: RequestId) -> Option<Reason> {
        let _ = (moment, id);
        None
    }

    /// A request of this standing has come and got a slot without waiting.
    fn started_at_once(&mut self, now: Time, standing: Standing) {
        let _ = (now, standing);
    }

    /// A request wants to wait.
    fn push(&mut self, moment: &Moment<'_>, id: RequestId) -> Push;

    /// A slot is free: who gets it? It waits no longer. `None` when nobody waits.
    fn pop(&mut self, moment: &Moment<'_>) -> Option<(RequestId, Reason)>;

    /// Before a slot is given: a waiting request that is not to have one any more, and why. It is
    /// shed; the order forgets it here. Asked until it says `None`.
    fn discard(&mut self, moment: &Moment<'_>) -> Option<(RequestId, Reason)> {
        let _ = moment;
        None
    }

    /// A waiting request has gone.
    fn remove(&mut self, moment: &Moment<'_>, id: RequestId) {
        let _ = (moment, id);
    }

    /// A waiting request has gone because its client has.
    fn departed(&mut self, moment: &Moment<'_>, id: RequestId) {
        self.remove(moment, id);
    }

    /// What part of the places that there are for a class is taken; nothing where it does not say.
    fn filled(&self, moment: &Moment<'_>, class: ClassId) -> Share {
        let _ = (moment, class);
        Share::new(0.0)
    }

    /// A measurement has come.
    fn read(&mut self, reading: Reading) {
        let _ = reading;
    }

    /// What it wants to be read of the machine, and over which time; nothing if `None`.
    fn meter(&self) -> Option<(Meter, Span)> {
        None
    }

    /// Whether newest go first somewhere at the moment.
    fn newest_first(&self) -> bool;
}

/// The part of so many places that is taken.
fn filled(taken: usize, places: usize) -> Share {
    Share::new(taken as f64 / places.max(1) as f64)
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The number is not in use.
    Free,
    /// It waits for a slot.
    Waiting,
    /// It has had a slot since then.
    Running(Time),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    waiting: Waiting,
    state: State,
}

/// How many slots strangers' requests may hold whose bodies have not come as a whole.
const UNFINISHED: Share = Share::new(0.5);

/// Strangers' requests whose bodies have not come as a whole.
#[derive(Debug, Default)]
struct Unfinished {
    waiting: u32,
    running: u32,
    /// How many may run.
    most: u32,
}

/// The engine's table of requests by number, and who waits.
///
/// A number whose state is `Waiting` is in both lists once it has entered the queue; any other is
/// in none.
#[derive(Debug)]
pub(crate) struct Requests {
    entries: Vec<Entry>,
    arrivals: Lists,
    by_class: Lists,
    /// By class, and for each by standing, those that run and can be stopped, in the order in which they
    /// started.
    stoppable: Lists,
    /// How many wait and run for whom.
    holders: Holders,
    /// How many may run at once, as of the last time that a slot was given.
    slots: u32,
    unfinished: Unfinished,
    /// Until then requests of unknown holders wait behind the others.
    attacked: Time,
}

impl Requests {
    pub(crate) fn new(classes: usize) -> Self {
        Self {
            entries: Vec::new(),
            arrivals: Lists::new(1),
            by_class: Lists::new(classes),
            stoppable: Lists::new(classes * Standing::COUNT),
            holders: Holders::new(),
            slots: 0,
            unfinished: Unfinished::default(),
            attacked: Time::ZERO,
        }
    }

    /// Notes a request under a number that is not in use.
    pub(crate) fn arrive(&mut self, id: RequestId, waiting: Waiting) {
        let entry = Entry { waiting, state: State::Waiting };
        if id.index() >= self.entries.len() {
            self.entries.resize(id.index() + 1, Entry { state: State::Free, ..entry });
            // A number may run, and be one that can be stopped, for the first time long after it has waited.
            self.stoppable.make_room(self.entries.len());
        }
        debug_assert_eq!(self.entries[id.index()].state, State::Free, "{id:?} is in use");
        self.entries[id.index()] = entry;
    }

    /// What is known of one whose number is in use.
    pub(crate) fn waiting(&self, id: RequestId) -> &Waiting {
        &self.entries[id.index()].waiting
    }

    pub(crate) fn state(&self, id: RequestId) -> State {
        self.entries.get(id.index()).map_or(State::Free, |entry| entry.state)
    }

    pub(crate) fn set(&mut self, id: RequestId, state: State) {
        self.entries[id.index()].state = state;
    }

    /// It waits from now on.
    pub(crate) fn enter_queue(&mut self, id: RequestId) {
        self.arrivals.push_back(0, id);
        let Waiting { class, holder, .. } = self.entries[id.index()].waiting;
        self.by_class.push_back(class.index(), id);
        self.holders.waits(holder);
        self.unfinished.waiting += u32::from(self.waiting(id).unfinished);
    }

    /// Empties the queue, for an order that knows so many classes: who waited, oldest first.
    pub(crate) fn empty_queue(&mut self, classes: usize) -> Vec<RequestId> {
        let waiting: Vec<RequestId> = self.arrivals.iter(0).collect();
        for id in &waiting {
            self.leave_queue(*id);
        }
        self.by_class.grow(classes);
        self.stoppable.grow(classes * Standing::COUNT);
        waiting
    }

    /// It runs from now on, and can be stopped.
    pub(crate) fn can_be_stopped(&mut self, id: RequestId) {
        let Waiting { stops_as, standing, .. } = self.entries[id.index()].waiting;
        self.stoppable.push_back(stops_as.index() * Standing::COUNT + standing.index(), id);
    }

    /// It cannot be stopped, or no longer.
    pub(crate) fn cannot_be_stopped(&mut self, id: RequestId) {
        self.stoppable.remove(id);
    }

    /// Whether there is anybody that can be stopped.
    pub(crate) const fn can_stop(&self) -> bool {
        self.stoppable.total() > 0
    }

    /// Of a class, the one that can be stopped, has proven no more than this, and has run for longest; and
    /// since when.
    pub(crate) fn longest(&self, class: usize, most: Standing) -> Option<(RequestId, Time)> {
        // Better standings come first.
        let standings = most.index()..Standing::COUNT;
        let ids = standings.filter_map(|s| self.stoppable.front(class * Standing::COUNT + s));
        let running = ids.filter_map(|id| match self.state(id) {
            State::Running(since) => Some((id, since)),
            State::Free | State::Waiting => None,
        });
        running.min_by_key(|(_, since)| *since)
    }

    /// It waits no longer.
    pub(crate) fn leave_queue(&mut self, id: RequestId) {
        if self.arrivals.remove(id).is_some() {
            self.by_class.remove(id);
            self.holders.waits_no_longer(self.entries[id.index()].waiting.holder);
            self.unfinished.waiting -= u32::from(self.waiting(id).unfinished);
        }
    }

    /// It holds a slot from now on.
    pub(crate) fn run(&mut self, now: Time, id: RequestId) {
        self.set(id, State::Running(now));
        self.holders.runs(self.entries[id.index()].waiting.holder);
        self.unfinished.running += u32::from(self.waiting(id).unfinished);
    }

    /// It has given its slot back.
    pub(crate) fn end(&mut self, id: RequestId) {
        self.set(id, State::Free);
        self.holders.runs_no_longer(self.entries[id.index()].waiting.holder);
        self.unfinished.running -= u32::from(self.waiting(id).unfinished);
    }

    /// How many requests hold a slot for the same holder as this one.
    pub(crate) fn running_of_holder(&self, id: RequestId) -> u32 {
        self.holders.running(self.entries[id.index()].waiting.holder)
    }

    /// A client has taken its answer at once: that speaks for its session and for its address.
    pub(crate) fn took_answer(&mut self, now: Time, id: RequestId) {
        for holder in self.holders_of(id) {
            self.holders.took_answer(now, holder);
        }
    }

    /// A request was stopped because its client was slow.
    pub(crate) fn was_slow(&mut self, now: Time, id: RequestId) {
        for holder in self.holders_of(id) {
            self.holders.was_slow(now, holder);
        }
    }

    /// The holder of a request, and its address if that is not the holder.
    fn holders_of(&self, id: RequestId) -> [Option<Holder>; 2] {
        let Waiting { holder, address, .. } = self.entries[id.index()].waiting;
        [holder, address.filter(|_| address != holder)]
    }

    /// Until then requests of unknown holders wait behind the others.
    pub(crate) fn is_attacked_until(&mut self, then: Time) {
        self.attacked = self.attacked.max(then);
    }

    /// Whether more unfinished requests wait than may run.
    pub(crate) const fn has_crowd_of_uploads(&self) -> bool {
        self.unfinished_is_full() && self.unfinished.waiting > self.unfinished.most
    }

    fn is_attacked(&self, now: Time) -> bool {
        now < self.attacked
    }

    /// Whether it matters now how the clients of holders have behaved: some may be slow, or an attack goes on.
    fn looks_at_holders(&self, now: Time) -> bool {
        self.is_attacked(now) || self.holders.may_be_slow(now)
    }

    /// A request was refused. Its holder is told only while that matters: each look at the table of holders may miss
    /// the cache.
    pub(crate) fn was_refused(&mut self, now: Time, id: RequestId) {
        if !self.looks_at_holders(now) {
            return;
        }
        self.holders.was_refused(now, self.entries[id.index()].waiting.holder);
    }

    /// So many may run at once. Unfinished ones may hold half of the slots, or `slow_share` if that is more, and
    /// one at the least.
    pub(crate) fn has_slots(&mut self, slots: u32, slow_share: Share) {
        self.slots = slots;
        let share = slow_share.get().max(UNFINISHED.get());
        self.unfinished.most = ((f64::from(slots) * share) as u32).max(1);
    }

    /// A running request is not unfinished any more.
    pub(crate) fn finishes_body(&mut self, id: RequestId) {
        if let State::Running(_) = self.state(id) {
            let waiting = &mut self.entries[id.index()].waiting;
            self.unfinished.running -= u32::from(core::mem::take(&mut waiting.unfinished));
        }
    }

    /// Whether unfinished requests hold as many slots as they may.
    pub(crate) const fn unfinished_is_full(&self) -> bool {
        self.unfinished.running >= self.unfinished.most
    }

    /// Whether a request that waits may have a slot if one is free.
    pub(crate) fn may_run(&self, id: RequestId) -> bool {
        !self.waiting(id).unfinished || !self.unfinished_is_full()
    }

    /// Whether a request waits that may have a slot.
    pub(crate) const fn wants_slot(&self) -> bool {
        let waiting = self.arrivals.total();
        waiting > self.unfinished.waiting as usize || waiting > 0 && !self.unfinished_is_full()
    }
}
