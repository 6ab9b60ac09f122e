//! The schedulers: which waiting request gets the next slot.
//!
//! One policy is one file with one type that implements [`Scheduler`]. The catalogue lists the
//! policies; nothing else knows their names. Every operation, including the removal of a request
//! from the middle, is O(1) in the number of waiting requests (and at most linear in the number of
//! classes, ≤ 64). It allocates only while the number of simultaneous requests exceeds any earlier
//! one.

mod behind;
mod by_class;
mod departures;
mod floor;
mod holders;
mod occupied;
mod principals;
mod ranked;
mod ranking;
mod requests;
mod session_first;
mod single;
mod value_index;

use alloc::boxed::Box;
use bywash_units::{Ratio, Time, TimeSpan};

pub use by_class::ByClass;
pub(crate) use floor::Floor;
pub(crate) use holders::{Holder, Holders, Trust};
pub use principals::Principal;
pub(crate) use principals::Principals;
pub(crate) use requests::{Requests, State};
pub use session_first::session_first;
pub use single::Single;
pub use value_index::value_index;

use crate::event::{Meter, Reading};
use crate::parameters::{Decides, Settings};
use crate::reason::Reason;
use crate::request::{AttemptKey, Class, ClassId, RequestId, Signals, Standing};
use crate::value::Values;

/// The policy kind of schedulers: which waiting request gets the next slot.
#[derive(Clone, Copy, Debug)]
pub enum Schedulers {}

impl Decides for Schedulers {
    type Build = fn(&SchedulerSettings, &[Class]) -> Box<dyn Scheduler>;
}

/// A scheduler with a value for each of its parameters.
pub type SchedulerSettings = Settings<Schedulers>;

/// The facts about a waiting request that a scheduler may use.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The request's class.
    pub class: ClassId,
    /// The class whose bounds apply while the request runs: its own class unless its path can be
    /// read in more than one way.
    pub stops_as: ClassId,
    /// The standing of the session.
    pub standing: Standing,
    /// Whether the request claims a session, proven or not.
    pub claims_session: bool,
    /// The signals that the request, or the first request of its session, showed.
    pub signals: Signals,
    /// Whether the request repeats one that was not answered.
    pub repeats: Repeats,
    /// The key that identifies a repetition of this request.
    pub attempt: Option<AttemptKey>,
    /// The principal that is charged for the request, if there is one.
    pub principal: Option<Principal>,
    /// The holder of the slot while the request runs, if it is known.
    pub(crate) holder: Option<Holder>,
    /// The address as a holder, if it is known.
    pub(crate) address: Option<Holder>,
    /// Whether the request is of a new session and its body has not been received completely.
    pub(crate) unfinished: bool,
    /// Whether the driver would stop the request while it runs.
    pub cancellable: bool,
    /// The time at which the request began to wait.
    pub since: Time,
}

/// The rank of a request because of how the clients of its holder have behaved ([`Trust`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Behaved {
    /// The rank of its class and its session.
    Well,
    /// Behind those: nothing is known about the holder, and slow clients hold the slots at present.
    Unknown,
    /// Behind those: the clients retry again and again although they are refused.
    Insistent,
    /// Behind all others.
    Slowly,
}

/// Whether a request repeats one that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// No sign that it does.
    No,
    /// The same request was lost recently.
    Seen,
    /// The request itself declares that.
    Declared,
}

/// A snapshot of the engine, which a scheduler sees when it decides.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    /// The present time.
    pub now: Time,
    /// The recent mean service time; zero while unknown.
    pub mean_service: TimeSpan,
    /// The learned worth of requests.
    pub values: &'a Values,
    pub(crate) requests: &'a Requests,
}

impl QueueView<'_> {
    /// Returns the facts about a waiting request.
    pub fn waiting(&self, id: RequestId) -> &Waiting {
        self.requests.waiting(id)
    }

    /// Returns how long a request has waited.
    pub fn age(&self, id: RequestId) -> TimeSpan {
        self.now.since(self.waiting(id).since)
    }

    /// Returns the number of waiting requests.
    pub fn length(&self) -> usize {
        self.requests.arrivals.total()
    }

    /// Returns the request that has waited longest.
    pub fn oldest(&self) -> Option<RequestId> {
        self.requests.arrivals.front(0)
    }

    /// Returns the request that arrived last.
    pub fn newest(&self) -> Option<RequestId> {
        self.requests.arrivals.back(0)
    }

    /// Returns the number of waiting requests of a class.
    pub fn length_of(&self, class: usize) -> u32 {
        self.requests.by_class.length(class)
    }

    /// Returns the request of a class that has waited longest.
    pub fn oldest_of(&self, class: usize) -> Option<RequestId> {
        self.requests.by_class.front(class)
    }

    /// Returns the waiting requests of a class in the order of arrival.
    pub fn of_class(&self, class: usize) -> impl Iterator<Item = RequestId> + '_ {
        self.requests.by_class.iter(class)
    }

    /// Returns whether the holder of a waiting request runs at least this share of the slots (two
    /// slots at the least) while requests of other holders wait.
    pub(crate) fn exceeds_share(&self, id: RequestId, share: Ratio) -> bool {
        let Requests { holders, slots, .. } = self.requests;
        let holder = self.waiting(id).holder;
        let most = ((f64::from(*slots) * share.get()) as u32).max(2);
        holders.running(holder) >= most && self.length() > holders.waiting(holder) as usize
    }

    /// Returns whether a waiting request may have a slot if one is free.
    pub(crate) fn may_run(&self, id: RequestId) -> bool {
        self.requests.may_run(id)
    }

    /// Returns whether unfinished requests hold as many slots as they may.
    pub(crate) fn unfinished_is_full(&self) -> bool {
        self.requests.unfinished_is_full()
    }

    /// Returns the rank of a request because of how the clients of its holder have behaved.
    pub(crate) fn behaved(&self, waiting: &Waiting) -> Behaved {
        if !self.requests.looks_at_holders(self.now) {
            return Behaved::Well;
        }
        let (is_new, attacked) = (waiting.standing == Standing::New, self.is_attacked());
        match self.requests.holders.trust(self.now, waiting.holder) {
            Trust::Slow if is_new => Behaved::Slowly,
            // A session that has proven itself loses its lead over strangers, and no more.
            Trust::Slow => Behaved::Unknown,
            Trust::Unknown if is_new && attacked => Behaved::Unknown,
            Trust::Insistent if is_new && attacked => Behaved::Insistent,
            Trust::Known | Trust::Unknown | Trust::Insistent => Behaved::Well,
        }
    }

    /// Returns whether many slow clients were stopped recently.
    pub(crate) fn is_attacked(&self) -> bool {
        self.requests.is_attacked(self.now)
    }

    /// Returns the request of a class that arrived last.
    pub fn newest_of(&self, class: usize) -> Option<RequestId> {
        self.requests.by_class.back(class)
    }
}

/// The scheduler's decision about a request that asks to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// The request waits.
    Queued,
    /// The request is refused, for this reason.
    Refused(Reason),
    /// The request waits. This other request, which was worse, is evicted for this reason.
    Evicted(RequestId, Reason),
}

/// A scheduler: a policy that orders waiting requests.
///
/// The engine keeps the waiting requests by arrival and by class and shows them in the
/// [`QueueView`]. A scheduler keeps only what it needs beyond that. A request that is being pushed
/// is not yet in the view; a request that is being removed still is.
pub trait Scheduler: Send {
    /// Returns the reason to reject a request that arrives while a slot is free, or `None` to let
    /// it run. A rejected request is shed. A scheduler that only decides which request is next
    /// rejects none here; an admission control may.
    fn reject(&mut self, view: &QueueView<'_>, id: RequestId) -> Option<Reason> {
        let _ = (view, id);
        None
    }

    /// Notes that a request arrived and got a slot without waiting.
    fn started_at_once(&mut self, view: &QueueView<'_>, id: RequestId) {
        let _ = (view, id);
    }

    /// Decides whether an arriving request may wait.
    fn push(&mut self, view: &QueueView<'_>, id: RequestId) -> Push;

    /// Chooses the request that gets a free slot; it no longer waits. Returns `None` if no request
    /// waits.
    fn pop(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)>;

    /// Returns a waiting request that is to get no slot any more, and the reason. The engine calls
    /// this before it gives a slot, until the answer is `None`. The request is shed, and the
    /// scheduler forgets it here.
    fn discard(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let _ = view;
        None
    }

    /// Forgets a waiting request that has left the queue.
    fn remove(&mut self, view: &QueueView<'_>, id: RequestId) {
        let _ = (view, id);
    }

    /// Forgets a waiting request whose client has left.
    fn departed(&mut self, view: &QueueView<'_>, id: RequestId) {
        self.remove(view, id);
    }

    /// Returns how near the queue is to losing requests like this one, from 0 to 1 and above:
    /// because places run out, or because requests have waited for a considerable part of the
    /// median patience or of `max_wait`. Returns 0 if the scheduler does not estimate it.
    fn pressure(&self, view: &QueueView<'_>, waiting: &Waiting, max_wait: TimeSpan) -> f64 {
        let _ = (view, waiting, max_wait);
        0.0
    }

    /// Returns the request that gets a slot which becomes free now: a waiting one, or `new`, which
    /// has not been queued yet.
    fn goes_first(&mut self, view: &QueueView<'_>, new: RequestId) -> RequestId {
        let _ = view;
        new
    }

    /// Handles a measurement of the machine.
    fn read(&mut self, reading: Reading) {
        let _ = reading;
    }

    /// Returns the measurement that the scheduler needs, and the time to average it over; `None` if
    /// it needs none.
    fn meter(&self) -> Option<(Meter, TimeSpan)> {
        None
    }

    /// Returns whether the newest requests of any standing or class go first at present.
    fn lifo(&self) -> bool;
}

/// The filling from which on a queue is about to lose requests.
const NEARLY_FULL: f64 = 7.0 / 8.0;

/// Returns the pressure on a queue with this number of places, of which `taken` are in use.
fn pressure(taken: usize, places: usize) -> f64 {
    taken as f64 / (places.max(1) as f64 * NEARLY_FULL)
}
