//! An engine with a full queue, and the driver's side of it.
//!
//! Half of those who wait are new, a quarter are sessions in progress, a quarter are transactions
//! of proven sessions. Numbers are given as a slab gives them: the one that was freed last first.

use std::array;

use super::{BATCH, PolicyCase, SESSIONS, Site};
use bywash_engine::Bounds;
use bywash_engine::{
    Action, AddressKey, AttemptKey, Class, ClassId, ClassSet, End, Engine, Event, Learn, Meter,
    Options, Reading, Request, RequestId, Service, SessionKey, Signals, Tier, catalog,
};
use bywash_harness::splitmix64::SplitMix64;
use bywash_units::{Share, Span, Time, Utility};

const BROWSE: ClassId = ClassId(0);
const PAY: ClassId = ClassId(1);

/// Longer than the threshold of the detector where services take no time: whoever waited through it
/// makes it overload.
const LONG: Span = Span::from_millis(25);
/// So patient that nobody is presumed gone in as many batches as there are.
const PATIENCE: &str = "1h";

/// Orders before anything is measured.
const LESSONS: u64 = 100;
/// What requests are worth is computed so rarely that no median holds it.
const SELDOM: Span = Span::from_secs(10_000);

fn classes(site: Site) -> Vec<Class> {
    let stop = (site == Site::Stoppable).then_some(Bounds { min: Span::MAX, max: Span::MAX });
    let class = |name: &str, tier, utility| Class {
        name: name.to_owned(),
        tier,
        utility: Utility::new(utility),
        earns: Utility::default(),
        stop,
        pinned: None,
        queue: None,
        after: ClassSet::NONE,
    };
    let two = [class("browse", Tier::Browse, 22.0), class("pay", Tier::Transact, 4_500.0)];
    let count = if site == Site::Small { two.len() } else { ClassSet::MOST };
    two.into_iter().cycle().take(count).collect()
}

/// A batch: a request under a number, each.
pub type Batch = [(RequestId, Request); BATCH];

/// An engine with one slot, which is taken, and a full queue.
pub struct LoadedEngine {
    engine: Engine,
    case: PolicyCase,
    now: Time,
    rng: SplitMix64,
    sessions: u64,
    actions: Vec<Action>,
    /// By number: what was last asked under it.
    requests: Vec<Request>,
    waiting: Vec<RequestId>,
    /// By number: its index in `waiting`.
    positions: Vec<u32>,
    running: RequestId,
    free: Vec<RequestId>,
}

impl LoadedEngine {
    /// So many wait, and no more may.
    pub fn new(case: PolicyCase, waiting: u32) -> Self {
        let sessions = waiting.min(SESSIONS);
        let ttl = Span::from_secs(100 * 365 * 86_400);
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

    /// Of every class that there may be one runs: room for what is known of it is made then.
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

    /// So much is bought that whoever ranks by worth knows what it is.
    fn learn(&mut self) {
        for session in 0..LESSONS {
            let session = SessionKey(spread(session));
            self.notify(Event::served(session, BROWSE));
            self.enter(Request { session: Some(session), ..Request::of(PAY) });
            self.notify(Event::Served {
                session,
                service: Service::content(PAY),
                signals: Signals::NONE,
                earned: Utility::new(1.0),
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
        // Every second is new; `engine` has made queues by class as long as this fills them.
        for i in 0..waiting {
            let request = if i % 2 == 0 { self.stranger() } else { self.known(i % 4 == 1) };
            self.enter(request);
        }
        if self.case.overloaded {
            self.notify(Event::Read(Reading { meter: Meter::Cpu, share: Share::ALL }));
        }
        assert_eq!(self.waiting.len(), waiting as usize, "{}: the queue is not full", self.case);
    }

    /// A first request, under a session that is made up.
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

    /// A request of a session that was served before.
    fn known(&mut self, pays: bool) -> Request {
        let session = SessionKey(spread(self.rng.below(self.sessions)));
        let class = self.any(if pays { PAY } else { BROWSE });
        let attempt = Some(AttemptKey(self.rng.next()));
        Request { session: Some(session), attempt, ..Request::of(class) }
    }

    /// Any class that is as this one.
    fn any(&mut self, class: ClassId) -> ClassId {
        let alike = if self.case.site == Site::Small { 1 } else { ClassSet::MOST as u64 / 2 };
        ClassId(class.0 + 2 * self.rng.below(alike) as u8)
    }

    /// Says `event` and keeps the books; not for what is measured.
    fn notify(&mut self, event: Event) {
        self.engine.on_event(self.now, event, &mut self.actions);
        self.settle();
    }

    /// Does what the engine has ordered.
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

    /// Before a batch: in overload, all have waited long; otherwise no time has passed.
    pub fn prepare(&mut self) {
        if self.case.overloaded {
            self.now = self.now + LONG;
        }
    }

    /// Requests of sessions in progress, about to come.
    pub fn newcomers(&mut self) -> Batch {
        self.prepare();
        array::from_fn(|_| (self.number(), self.known(false)))
    }

    /// They come.
    pub fn arrive(&mut self, batch: &Batch) {
        for (id, request) in *batch {
            let event = Event::Arrived { id, request };
            self.engine.on_event(self.now, event, &mut self.actions);
        }
    }

    /// Those who came leave, and as many as were pushed out come again, new ones.
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

    /// As many requests as a batch has, one after the other, finish and let the next start.
    pub fn turn_over(&mut self) {
        let mut id = self.running;
        for _ in 0..BATCH {
            let event = Event::Finished { id, end: End::ANSWERED };
            self.engine.on_event(self.now, event, &mut self.actions);
            if let Some(Action::Dispatch { id: next, .. }) = self.actions.last() {
                id = *next;
            }
        }
    }

    /// As many come as have started, the same requests under other numbers.
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

    /// Some of those who wait, from anywhere in the queue.
    pub fn leavers(&mut self) -> Batch {
        self.prepare();
        array::from_fn(|_| {
            let id = self.waiting[self.rng.below(self.waiting.len() as u64) as usize];
            self.dequeue(id);
            (id, self.requests[id.0 as usize])
        })
    }

    /// Their clients leave.
    pub fn leave(&mut self, batch: &Batch) {
        for (id, _) in *batch {
            self.engine.on_event(self.now, Event::ClientGone { id }, &mut self.actions);
        }
    }

    /// And come again.
    ///
    /// # Panics
    /// If the engine ordered anything when they left: they only waited.
    pub fn come_back(&mut self, batch: &Batch) {
        assert!(self.actions.is_empty(), "a client that leaves the queue frees no slot");
        for (id, request) in *batch {
            self.free.push(id);
            self.enter(request);
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> u32 {
        self.engine.status(self.now).waiting
    }
}

/// Session keys are keyed hashes: all 64 bits are in use.
const fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn engine(case: PolicyCase, waiting: u32, options: Options) -> Engine {
    let policy = catalog::find(case.policy).expect("the policy is in the catalogue");
    // As `fill` mixes them: every fourth request is a transaction.
    let transact = waiting / 4 + u32::from(waiting % 4 >= 2);
    let [capacity, browse, transact] =
        [waiting, waiting - transact, transact].map(|n| n.to_string());
    let wanted = [
        ("capacity", capacity.as_str()),
        ("browse", &browse),
        ("transact", &transact),
        ("principal_cap", "1000000"),
        ("patience", PATIENCE),
    ];
    let has = |name: &str| policy.parameters.iter().any(|parameter| parameter.name == name);
    let settings = policy.settings(wanted.into_iter().filter(|(name, _)| has(name)));
    let order = settings.expect("the parameters are in their ranges").order(&classes(case.site));
    Engine::new(classes(case.site), order, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Kind, Stopwatch};

    #[test]
    fn a_queue_is_as_long_after_a_batch_of_any_kind_as_before() {
        for case in PolicyCase::ALL {
            for waiting in [10, 1_000] {
                let mut loaded = LoadedEngine::new(case, waiting);
                for kind in Kind::ALL {
                    Stopwatch::new(50).decision(&mut loaded, kind);
                    assert_eq!(loaded.waiting(), waiting, "{case}: {}", kind.name());
                    assert_eq!(loaded.waiting.len(), waiting as usize, "{case}");
                }
            }
        }
    }

    #[test]
    fn our_own_orders_push_out_and_the_others_refuse() {
        for case in PolicyCase::ALL {
            let mut loaded = LoadedEngine::new(case, 100);
            assert!(loaded.engine.learning().is_known());
            let batch = loaded.newcomers();
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
