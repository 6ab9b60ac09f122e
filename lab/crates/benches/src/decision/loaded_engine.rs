//! An engine with a full queue, and the driver's side of it.
//!
//! Half of the waiting requests are from new clients, a quarter from sessions in progress, and a
//! quarter are transactions of proven sessions. Request numbers are allocated as in a slab: the
//! most recently freed number is used first.

use std::array;

use super::{BATCH, PolicyCase, SESSIONS, Site};
use bywash_engine::Bounds;
use bywash_engine::{
    Action, AddressKey, AttemptKey, Class, ClassId, ClassSet, End, Engine, Event, Learn, Meter,
    Options, Reading, Request, RequestId, Service, SessionKey, Signals, Tier, catalog,
};
use bywash_harness::splitmix64::SplitMix64;
use bywash_units::{Ratio, Time, TimeSpan, Utility};

const BROWSE: ClassId = ClassId(0);
const PAY: ClassId = ClassId(1);

/// A wait that puts the engine into overload. It is longer than the overload detector's threshold
/// for requests whose service takes no time.
const LONG: TimeSpan = TimeSpan::from_millis(25);
/// The patience of all clients. With so long a patience, the engine presumes no client gone during
/// the measurement.
const PATIENCE: &str = "1h";

/// The number of orders that are completed before the measurement, from which the engine learns
/// values.
const LESSONS: u64 = 100;
/// The interval at which the engine recomputes request values. It is so long that no median
/// includes the recomputation.
const SELDOM: TimeSpan = TimeSpan::from_secs(10_000);

fn classes(site: Site) -> Vec<Class> {
    let stop =
        (site == Site::Cancellable).then_some(Bounds { min: TimeSpan::MAX, max: TimeSpan::MAX });
    let class = |name: &str, tier, utility| Class {
        name: name.to_owned(),
        tier,
        utility: Utility::new(utility),
        revenue: Utility::default(),
        stop,
        fixed_value: None,
        queue: None,
        requires: ClassSet::NONE,
    };
    let two = [class("browse", Tier::Browsing, 22.0), class("pay", Tier::Transaction, 4_500.0)];
    let count = if site == Site::Small { two.len() } else { ClassSet::MOST };
    two.into_iter().cycle().take(count).collect()
}

/// A batch of requests, each with its number.
pub type Batch = [(RequestId, Request); BATCH];

/// An engine with one slot, which is taken, and a full queue.
pub struct LoadedEngine {
    engine: Engine,
    case: PolicyCase,
    now: Time,
    rng: SplitMix64,
    sessions: u64,
    actions: Vec<Action>,
    /// The last request that used each request number, indexed by number.
    requests: Vec<Request>,
    waiting: Vec<RequestId>,
    /// The index in `waiting` of each request number, indexed by number. Valid only for waiting
    /// requests.
    positions: Vec<u32>,
    running: RequestId,
    free: Vec<RequestId>,
}

impl LoadedEngine {
    /// Creates an engine whose queue has `waiting` places and is full.
    pub fn new(case: PolicyCase, waiting: u32) -> Self {
        let sessions = waiting.min(SESSIONS);
        let ttl = TimeSpan::from_secs(100 * 365 * 86_400);
        let learn = Learn { every: SELDOM, ..Learn::default() };
        let options =
            Options { limit: 1.into(), sessions, session_ttl: ttl, learn, ..Options::default() };
        let numbers = waiting + 1 + BATCH as u32;
        let nothing = Request::of(BROWSE);
        let mut loaded = Self {
            engine: engine(case, waiting, options),
            case,
            now: Time::ZERO,
            rng: SplitMix64::new(1),
            sessions: u64::from(sessions),
            actions: Vec::with_capacity(2 * BATCH),
            requests: vec![nothing; numbers as usize],
            waiting: Vec::with_capacity(numbers as usize),
            positions: vec![0; numbers as usize],
            running: RequestId(0),
            free: (0..numbers).map(RequestId).collect(),
        };
        loaded.shuffle_numbers();
        loaded.meet_classes();
        loaded.learn();
        loaded.fill(waiting);
        loaded
    }

    fn shuffle_numbers(&mut self) {
        for i in (1..self.free.len()).rev() {
            self.free.swap(i, self.rng.below(i as u64 + 1) as usize);
        }
    }

    /// Runs one request of each class, so that the engine allocates its per-class statistics before
    /// the measurement.
    fn meet_classes(&mut self) {
        if self.case.site == Site::Small {
            return;
        }
        for class in (0..ClassSet::MOST as u8).map(ClassId) {
            self.enter(Request::of(class));
            let id = self.running;
            self.notify(Event::Finished { id, end: End::ANSWERED });
            self.free.push(id);
        }
    }

    /// Completes [`LESSONS`] orders, so that policies which rank by value know the values.
    fn learn(&mut self) {
        for session in 0..LESSONS {
            let session = SessionKey(spread(session));
            self.notify(Event::served(session, BROWSE));
            self.enter(Request { session: Some(session), ..Request::of(PAY) });
            self.notify(Event::Served {
                session,
                service: Service::content(PAY),
                signals: Signals::NONE,
                revenue: Utility::new(1.0),
                in_time: true,
            });
            let id = self.running;
            self.notify(Event::Finished { id, end: End::ANSWERED });
            self.free.push(id);
        }
        self.now = self.now + SELDOM;
    }

    fn fill(&mut self, waiting: u32) {
        for session in 0..self.sessions {
            let session = SessionKey(spread(session));
            self.notify(Event::served(session, BROWSE));
        }
        let first = self.stranger();
        self.enter(first);
        // Every second client is new. `engine` has set the capacities of the per-class queues so
        // that this mix fills them exactly.
        for i in 0..waiting {
            let request = if i % 2 == 0 { self.stranger() } else { self.known(i % 4 == 1) };
            self.enter(request);
        }
        if self.case.overloaded {
            self.notify(Event::Read(Reading { meter: Meter::Cpu, share: Ratio::ALL }));
        }
        assert_eq!(self.waiting.len(), waiting as usize, "{}: the queue is not full", self.case);
    }

    /// Creates the first request of a new client, with a session key that the engine has not seen.
    fn stranger(&mut self) -> Request {
        let [session, address, attempt] = array::from_fn(|_| self.rng.next());
        let class = self.any(BROWSE);
        Request {
            session: Some(SessionKey(session)),
            address: Some(AddressKey(address)),
            attempt: Some(AttemptKey(attempt)),
            ..Request::of(class)
        }
    }

    /// Creates a request of a session that the engine has served before. The request is a
    /// transaction if `pays`, else browsing.
    fn known(&mut self, pays: bool) -> Request {
        let session = SessionKey(spread(self.rng.below(self.sessions)));
        let class = self.any(if pays { PAY } else { BROWSE });
        let attempt = Some(AttemptKey(self.rng.next()));
        Request { session: Some(session), attempt, ..Request::of(class) }
    }

    /// Returns a random class of the same tier as `class`.
    fn any(&mut self, class: ClassId) -> ClassId {
        let alike = if self.case.site == Site::Small { 1 } else { ClassSet::MOST as u64 / 2 };
        ClassId(class.0 + 2 * self.rng.below(alike) as u8)
    }

    /// Sends `event` to the engine and applies the engine's actions to this copy of the queue.
    /// Measured code must not call it, because the copying costs time.
    fn notify(&mut self, event: Event) {
        self.engine.on_event(self.now, event, &mut self.actions);
        self.settle();
    }

    /// Applies the engine's actions to this copy of the queue, and clears them.
    fn settle(&mut self) {
        for i in 0..self.actions.len() {
            match self.actions[i] {
                Action::Dispatch { id, .. } => {
                    self.dequeue(id);
                    self.running = id;
                }
                Action::Shed { id, .. } => {
                    self.dequeue(id);
                    self.free.push(id);
                }
                Action::Cancel { .. } | Action::Terminate { .. } => {
                    unreachable!(
                        "no client leaves while its request runs, and no request has run long \
                         enough to be stopped"
                    )
                }
            }
        }
        self.actions.clear();
    }

    fn number(&mut self) -> RequestId {
        self.free.pop().expect("there are numbers for the queue, the slot and one batch")
    }

    fn enqueue(&mut self, id: RequestId, request: Request) {
        self.requests[id.0 as usize] = request;
        self.positions[id.0 as usize] = self.waiting.len() as u32;
        self.waiting.push(id);
    }

    fn dequeue(&mut self, id: RequestId) {
        let position = self.positions[id.0 as usize];
        self.waiting.swap_remove(position as usize);
        if let Some(moved) = self.waiting.get(position as usize) {
            self.positions[moved.0 as usize] = position;
        }
    }

    fn enter(&mut self, request: Request) {
        let id = self.number();
        self.enqueue(id, request);
        self.notify(Event::Arrived { id, request });
    }

    /// Prepares the clock for a batch. In overload, it moves the clock forward so that every
    /// waiting request has waited long. Otherwise it does nothing.
    pub fn prepare(&mut self) {
        if self.case.overloaded {
            self.now = self.now + LONG;
        }
    }

    /// Creates a batch of new browsing requests of sessions in progress, which have not arrived
    /// yet.
    pub fn new_batch(&mut self) -> Batch {
        self.prepare();
        array::from_fn(|_| (self.number(), self.known(false)))
    }

    /// Sends the arrivals of a batch to the engine. This is the measured code.
    pub fn arrive(&mut self, batch: &Batch) {
        for (id, request) in *batch {
            let event = Event::Arrived { id, request };
            self.engine.on_event(self.now, event, &mut self.actions);
        }
    }

    /// Restores the queue after [`Self::arrive`]. Removes the requests of the batch that the engine
    /// queued. For each of them, adds the request of a new client, in place of the one that the
    /// engine evicted.
    pub fn replace_by_new(&mut self, batch: &Batch) {
        for (id, request) in *batch {
            self.enqueue(id, request);
        }
        let refused = |id| move |action: &Action| matches!(action, Action::Shed { id: shed, .. } if *shed == id);
        let queued = batch.map(|(id, _)| (id, !self.actions.iter().any(refused(id))));
        self.settle();
        for (id, _) in queued.into_iter().filter(|(_, queued)| *queued) {
            self.dequeue(id);
            self.free.push(id);
            self.notify(Event::ClientGone { id });
            let stranger = self.stranger();
            self.enter(stranger);
        }
    }

    /// Finishes [`BATCH`] requests one after the other. Each finish makes the engine start the next
    /// request. This is the measured code.
    pub fn finish_batch(&mut self) {
        let mut id = self.running;
        for _ in 0..BATCH {
            let event = Event::Finished { id, end: End::ANSWERED };
            self.engine.on_event(self.now, event, &mut self.actions);
            if let Some(Action::Dispatch { id: next, .. }) = self.actions.last() {
                id = *next;
            }
        }
    }

    /// Restores the queue after [`Self::finish_batch`]: queues the started requests again under
    /// other request numbers.
    pub fn refill(&mut self) {
        let started: [RequestId; BATCH] = array::from_fn(|i| match self.actions.get(i) {
            Some(Action::Dispatch { id, .. }) => *id,
            other => unreachable!("the queue is longer than a batch: {other:?}"),
        });
        let requests = started.map(|id| self.requests[id.0 as usize]);
        self.free.push(self.running);
        self.free.extend(&started[..BATCH - 1]);
        self.settle();
        for request in requests {
            self.enter(request);
        }
    }

    /// Picks a batch of waiting requests at random from the whole queue, and removes them from this
    /// copy of the queue.
    pub fn leaving_batch(&mut self) -> Batch {
        self.prepare();
        array::from_fn(|_| {
            let id = self.waiting[self.rng.below(self.waiting.len() as u64) as usize];
            self.dequeue(id);
            (id, self.requests[id.0 as usize])
        })
    }

    /// Reports to the engine that the clients of a batch have left. This is the measured code.
    pub fn leave(&mut self, batch: &Batch) {
        for (id, _) in *batch {
            self.engine.on_event(self.now, Event::ClientGone { id }, &mut self.actions);
        }
    }

    /// Queues the requests of a batch again after [`Self::leave`].
    ///
    /// # Panics
    ///
    /// Panics if the engine returned any action when the clients left. No action is correct,
    /// because the requests only waited.
    pub fn requeue(&mut self, batch: &Batch) {
        assert!(self.actions.is_empty(), "a client that leaves the queue frees no slot");
        for (id, request) in *batch {
            self.free.push(id);
            self.enter(request);
        }
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> u32 {
        self.engine.status(self.now).waiting
    }
}

/// Spreads a session number over 64 bits. Real session keys use all bits, because they are keyed
/// hashes.
const fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn engine(case: PolicyCase, waiting: u32, options: Options) -> Engine {
    let policy = catalog::find(case.policy).expect("the policy is in the catalogue");
    // The same mix as in `fill`: every fourth request is a transaction.
    let transactions = waiting / 4 + u32::from(waiting % 4 >= 2);
    let [capacity, browsing, transactions] =
        [waiting, waiting - transactions, transactions].map(|n| n.to_string());
    let wanted = [
        ("capacity", capacity.as_str()),
        ("browsing_capacity", &browsing),
        ("transaction_capacity", &transactions),
        ("principal_cap", "1000000"),
        ("patience", PATIENCE),
    ];
    let has = |name: &str| policy.parameters.iter().any(|parameter| parameter.name == name);
    let settings = policy.settings(wanted.into_iter().filter(|(name, _)| has(name)));
    let scheduler =
        settings.expect("the parameters are in their ranges").scheduler(&classes(case.site));
    Engine::new(classes(case.site), scheduler, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{DecisionKind, Stopwatch};

    #[test]
    fn a_queue_is_as_long_after_a_batch_of_any_kind_as_before() {
        for case in PolicyCase::ALL {
            for waiting in [10, 1_000] {
                let mut loaded = LoadedEngine::new(case, waiting);
                for kind in DecisionKind::ALL {
                    Stopwatch::new(50).decision(&mut loaded, kind);
                    assert_eq!(loaded.waiting(), waiting, "{case}: {}", kind.name());
                    assert_eq!(loaded.waiting.len(), waiting as usize, "{case}");
                }
            }
        }
    }

    #[test]
    fn our_own_schedulers_evict_and_the_others_refuse() {
        for case in PolicyCase::ALL {
            let mut loaded = LoadedEngine::new(case, 100);
            assert!(loaded.engine.learning().is_known());
            let batch = loaded.new_batch();
            loaded.arrive(&batch);
            let came = |id| batch.iter().any(|(new, _)| *new == id);
            for action in &loaded.actions {
                let Action::Shed { id, .. } = action else { panic!("{action:?}") };
                let ours = matches!(case.policy, "session-first" | "value-index");
                assert_eq!(came(*id), !ours, "{case}");
            }
            assert_eq!(loaded.actions.len(), BATCH);
        }
    }
}
