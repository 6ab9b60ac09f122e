//! Which waiting request gets the next slot.
//!
//! One policy is one file with one type that is an [`Order`]. The catalogue lists them; nothing
//! else knows their names. Every operation, the removal of a request from the middle included, is
//! O(1) in the number of requests that wait (and at most linear in the number of classes, ≤ 64),
//! and allocates only while the number of requests at once grows beyond what was seen before.

mod behind;
mod by_class;
mod departures;
mod floor;
mod holders;
mod lists;
mod occupied;
mod principals;
mod ranked;
mod requests;
mod session_first;
mod single;
mod value_index;

use bywash_units::{Share, Span, Time};

pub use by_class::ByClass;
pub(crate) use floor::Floor;
pub(crate) use holders::{Holder, Holders, Trust};
pub(crate) use lists::Lists;
pub use principals::Principal;
pub(crate) use principals::Principals;
pub(crate) use requests::{Requests, State};
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

    /// How near the queue is to losing requests like this one, from 0 to 1 and above: for want of places, or because
    /// they have waited for long. 0 where the order does not say.
    fn pressure(&self, moment: &Moment<'_>, waiting: &Waiting) -> f64 {
        let _ = (moment, waiting);
        0.0
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

/// Filled so far, a queue is about to lose requests.
const NEARLY_FULL: f64 = 7.0 / 8.0;

/// The pressure on a queue of so many places.
fn pressure(taken: usize, places: usize) -> f64 {
    taken as f64 / (places.max(1) as f64 * NEARLY_FULL)
}
