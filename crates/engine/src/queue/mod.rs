//! The schedulers, which choose the waiting request that gets the next slot.
//!
//! Each policy is one file with one type that implements [`Scheduler`]. The catalogue lists the
//! policies, and no other code knows their names. Every operation takes constant time in the number
//! of waiting requests, including the removal of a request from the middle. It takes at most linear
//! time in the number of classes (≤ 64). Memory is allocated only while more requests wait and run
//! at once than ever before.

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
use crate::overload::GROUPS;
use crate::parameters::{Decides, Settings};
use crate::population::TargetGroup;
use crate::reason::Reason;
use crate::request::{
    AttemptKey, Class, ClassId, PopulationKey, RequestId, Signals, Standing, TargetKey, VisitorKey,
};
use crate::value::Values;

/// The kind of policy that chooses the waiting request that gets the next slot.
#[derive(Clone, Copy, Debug)]
pub enum Schedulers {}

impl Decides for Schedulers {
    type Build = fn(&SchedulerSettings, &[Class]) -> Box<dyn Scheduler>;
}

/// A scheduler with a value for each of its parameters.
pub type SchedulerSettings = Settings<Schedulers>;

/// The facts about a waiting request that a scheduler may use.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact about the request")]
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The request's class.
    pub class: ClassId,
    /// The class whose `run_min` and `run_max` apply while the request runs. It differs from
    /// `class` only if the path can be read in more than one way.
    pub stops_as: ClassId,
    /// The standing of the request's session when the request arrived.
    pub standing: Standing,
    /// Whether the request claims a session, whether or not the engine knows that session.
    pub claims_session: bool,
    /// The signals that the session showed when it began, or otherwise those of the request.
    pub signals: Signals,
    /// The population of the client, if the session is new and populations are told apart.
    pub population: Option<PopulationKey>,
    /// The client, if the driver tells populations apart.
    pub(crate) visitor: Option<VisitorKey>,
    /// Whether the request is for a part of a page, which neither begins a visit nor reads on.
    pub(crate) part: bool,
    /// The target, if the driver tells targets apart.
    pub(crate) target: Option<TargetKey>,
    /// The group of the target with which the visit began; `None` if that does not count.
    pub(crate) target_group: Option<TargetGroup>,
    /// Whether the request repeats an earlier one that was not answered, and how that is known.
    pub repeats: Repeats,
    /// The key by which a repetition of this request is recognised.
    pub attempt: Option<AttemptKey>,
    /// The principal whose limit of waiting requests applies to this request, if there is one.
    pub principal: Option<Principal>,
    /// The session or address whose share of the slots this request uses while it runs, if it is
    /// known.
    pub(crate) holder: Option<Holder>,
    /// The client's address in the form of a holder, if it is known.
    pub(crate) address: Option<Holder>,
    /// Whether the request belongs to a new session and part of its body has not been received.
    pub(crate) unfinished: bool,
    /// Whether the driver is willing to stop the request while it runs.
    pub cancellable: bool,
    /// The time at which the request began to wait.
    pub since: Time,
}

/// How a request ranks because of the past behaviour of its holder's clients ([`Trust`]). Better
/// ranks sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Behaved {
    /// No demotion: class and session alone decide.
    Well,
    /// Behind well-behaved holders: nothing is known about the holder, and slow clients hold slots
    /// at present.
    Unknown,
    /// Behind unknown holders: the clients retry again and again although they are refused.
    Insistent,
    /// Behind all other holders: requests were stopped because the clients were slow.
    Slowly,
}

/// The answer to the question whether a request repeats an earlier one that was not answered, and
/// how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// There is no sign that the request is a repetition.
    No,
    /// A request with the same attempt key was lost recently.
    Seen,
    /// The request itself declares that it is a repetition.
    Declared,
}

/// A read-only view of the engine, which a scheduler gets when it decides.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    /// The present time.
    pub now: Time,
    /// The recent mean time that a request holds its slot; zero while unknown.
    pub mean_service: TimeSpan,
    /// The learned worth of requests, by class and signals.
    pub values: &'a Values,
    pub(crate) requests: &'a Requests,
}

impl QueueView<'_> {
    /// Returns the facts about a request that waits or asks to wait.
    pub fn waiting(&self, id: RequestId) -> &Waiting {
        self.requests.waiting(id)
    }

    /// Returns how long a request has waited.
    pub fn age(&self, id: RequestId) -> TimeSpan {
        self.now.since(self.waiting(id).since)
    }

    /// Returns the number of waiting requests of all classes.
    pub fn length(&self) -> usize {
        self.requests.arrivals.total()
    }

    /// Returns the request that has waited longest, of all classes; `None` if none waits.
    pub fn oldest(&self) -> Option<RequestId> {
        self.requests.arrivals.front(0)
    }

    /// Returns the waiting request that arrived last, of all classes; `None` if none waits.
    pub fn newest(&self) -> Option<RequestId> {
        self.requests.arrivals.back(0)
    }

    /// Returns the number of waiting requests of the class with index `class`.
    pub fn length_of(&self, class: usize) -> u32 {
        self.requests.by_class.length(class)
    }

    /// Returns the request of the class with index `class` that has waited longest; `None` if none
    /// waits.
    pub fn oldest_of(&self, class: usize) -> Option<RequestId> {
        self.requests.by_class.front(class)
    }

    /// Returns the waiting requests of the class with this index, in the order of arrival.
    pub fn of_class(&self, class: usize) -> impl Iterator<Item = RequestId> + '_ {
        self.requests.by_class.iter(class)
    }

    /// Returns whether the holder of a waiting request already uses up its share of the slots while
    /// requests of other holders wait. A holder may have the fraction `share` of the slots, and two
    /// slots at least.
    pub(crate) fn exceeds_share(&self, id: RequestId, share: Ratio) -> bool {
        let Requests { holders, slots, .. } = self.requests;
        let holder = self.waiting(id).holder;
        let most = ((f64::from(*slots) * share.get()) as u32).max(2);
        holders.running(holder) >= most && self.length() > holders.waiting(holder) as usize
    }

    /// Returns whether a waiting request may get a slot that is free. An unfinished request may not
    /// if unfinished requests already hold their maximum number of slots.
    pub(crate) fn may_run(&self, id: RequestId) -> bool {
        self.requests.may_run(id)
    }

    /// Returns whether unfinished requests hold their maximum number of slots.
    pub(crate) fn unfinished_is_full(&self) -> bool {
        self.requests.unfinished_is_full()
    }

    /// Returns how a request ranks because of the past behaviour of its holder's clients.
    pub(crate) fn behaved(&self, waiting: &Waiting) -> Behaved {
        if !self.requests.considers_holders(self.now) {
            return Behaved::Well;
        }
        let (is_new, attacked) = (waiting.standing == Standing::New, self.is_attacked());
        match self.requests.holders.trust(self.now, waiting.holder) {
            Trust::Slow if is_new => Behaved::Slowly,
            // A proven session with slow clients loses its lead over new sessions, and nothing
            // more.
            Trust::Slow => Behaved::Unknown,
            Trust::Unknown if is_new && attacked => Behaved::Unknown,
            Trust::Insistent if is_new && attacked => Behaved::Insistent,
            Trust::Known | Trust::Unknown | Trust::Insistent => Behaved::Well,
        }
    }

    /// Returns the level of the population of a waiting request; see
    /// [`Populations::level`](crate::population::Populations::level).
    pub(crate) fn level(&self, waiting: &Waiting) -> usize {
        self.requests.populations.level(waiting.population, waiting.target_group)
    }

    /// Returns whether many slow clients were stopped recently, or many uploads wait, so that
    /// unknown holders rank behind known ones.
    pub(crate) fn is_attacked(&self) -> bool {
        self.requests.is_attacked(self.now)
    }

    /// Returns the waiting request of the class with index `class` that arrived last; `None` if
    /// none waits.
    pub fn newest_of(&self, class: usize) -> Option<RequestId> {
        self.requests.by_class.back(class)
    }
}

/// The scheduler's decision about an arriving request that has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// The request waits.
    Queued,
    /// The request is refused, for this reason.
    Refused(Reason),
    /// The request waits. The given other request, which ranked worse, is evicted for this reason.
    Evicted(RequestId, Reason),
}

/// A scheduler: a policy that orders waiting requests.
///
/// The engine keeps the lists of waiting requests, by arrival and by class, and shows them in the
/// [`QueueView`]. A scheduler stores only what it needs in addition. During [`Scheduler::push`] the
/// new request is not yet in these lists. During a removal the request is still in them.
pub trait Scheduler: Send {
    /// Returns the reason to reject a request that arrives while a slot is free; `None` to let it
    /// run. A rejected request is shed. A scheduler that only orders requests keeps this default,
    /// which rejects none. An admission control may reject.
    fn reject(&mut self, view: &QueueView<'_>, id: RequestId) -> Option<Reason> {
        let _ = (view, id);
        None
    }

    /// Notes that a request arrived and got a slot immediately, without waiting.
    fn started_at_once(&mut self, view: &QueueView<'_>, id: RequestId) {
        let _ = (view, id);
    }

    /// Decides whether an arriving request may wait, and adds it to the scheduler if so.
    fn push(&mut self, view: &QueueView<'_>, id: RequestId) -> Push;

    /// Chooses the request that gets a free slot, and removes it from the scheduler. Returns `None`
    /// if no request may have the slot.
    fn pop(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)>;

    /// Returns a waiting request that should never get a slot, and the reason; `None` if there is
    /// none. The engine sheds the request, and the scheduler forgets it here. The engine calls this
    /// before it gives a slot, until the result is `None`.
    fn discard(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let _ = view;
        None
    }

    /// Forgets a waiting request that the engine takes out of the queue. The engine does not call
    /// this for requests that [`Scheduler::push`], [`Scheduler::pop`] or [`Scheduler::discard`]
    /// took out.
    fn remove(&mut self, view: &QueueView<'_>, id: RequestId) {
        let _ = (view, id);
    }

    /// Forgets a waiting request whose client has left. A scheduler may learn the patience of
    /// clients from the wait.
    fn departed(&mut self, view: &QueueView<'_>, id: RequestId) {
        self.remove(view, id);
    }

    /// Returns how near the queue is to losing requests like this one: 0 is far, and 1 or more
    /// means that losses are imminent. Losses are near when places run out, or when requests have
    /// waited for a considerable part of `max_wait` or of the clients' median patience. A scheduler
    /// that makes no such estimate returns 0.
    fn pressure(&self, view: &QueueView<'_>, waiting: &Waiting, max_wait: TimeSpan) -> f64 {
        let _ = (view, waiting, max_wait);
        0.0
    }

    /// Returns the request that would get a slot if one became free now: a waiting one, or `new`,
    /// which has not been queued yet.
    fn goes_first(&mut self, view: &QueueView<'_>, new: RequestId) -> RequestId {
        let _ = view;
        new
    }

    /// Handles a measurement of the machine, such as its CPU use. Most schedulers ignore it.
    fn read(&mut self, reading: Reading) {
        let _ = reading;
    }

    /// Returns the measurement of the machine that the scheduler needs, and the time to average it
    /// over. Returns `None` if the scheduler needs none.
    fn meter(&self) -> Option<(Meter, TimeSpan)> {
        None
    }

    /// Returns the group that a request belongs to, below [`GROUPS`]. Better groups have lower
    /// numbers. A scheduler that does not rank by standing has one group.
    fn group(&self, waiting: &Waiting) -> usize {
        let _ = waiting;
        0
    }

    /// Returns the numbers of waiting requests by group. Requests that rank behind the groups
    /// because of their clients' behaviour are not counted.
    fn waiting_by_group(&self, view: &QueueView<'_>) -> [u32; GROUPS] {
        let mut waiting = [0; GROUPS];
        waiting[0] = view.length() as u32;
        waiting
    }

    /// Returns whether newest first is in force at present for any class or standing.
    fn lifo(&self) -> bool;
}

/// The minimum fraction of the places in use at which a queue is about to lose requests.
const NEARLY_FULL: f64 = 7.0 / 8.0;

/// Returns the pressure on a queue with `places` places, of which `taken` are in use. It is 1 when
/// the queue is filled to [`NEARLY_FULL`].
fn pressure(taken: usize, places: usize) -> f64 {
    taken as f64 / (places.max(1) as f64 * NEARLY_FULL)
}
