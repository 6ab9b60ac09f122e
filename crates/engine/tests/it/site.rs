//! A site for tests: a shop with the eight classes of paper 1, a clock, and a log of the engine's
//! actions.

use bywash_engine::catalog::{self, Settings};
use bywash_engine::{
    Action, AddressKey, Class, ClassId, ClassSet, End, Engine, Event, Meter, Options, Reading,
    Reason, Request, RequestId, SessionKey, Status, Tier,
};
use bywash_units::{Ratio, Time, TimeSpan, Utility};

pub(crate) const MAIN: ClassId = ClassId(0);
pub(crate) const BROWSE: ClassId = ClassId(1);
pub(crate) const SEARCH: ClassId = ClassId(2);
pub(crate) const DETAILS: ClassId = ClassId(3);
pub(crate) const LOGIN: ClassId = ClassId(4);
pub(crate) const SHIPPING: ClassId = ClassId(5);
pub(crate) const PAYMENT: ClassId = ClassId(6);
pub(crate) const CONFIRM: ClassId = ClassId(7);

/// Returns the classes of paper 1, «Sample 'Utility' Values for Queues». Login requires no other
/// class. Each later step of a purchase requires the one before it.
pub(crate) fn classes() -> Vec<Class> {
    let class = |name: &str, tier, utility, requires| Class {
        name: name.to_string(),
        tier,
        utility: Utility::new(utility),
        revenue: Utility::default(),
        stop: None,
        fixed_value: None,
        queue: None,
        requires,
    };
    let requires = |class| ClassSet::NONE.with(class);
    vec![
        class("main", Tier::Browsing, 27.0, ClassSet::NONE),
        class("browse", Tier::Browsing, 22.0, ClassSet::NONE),
        class("search", Tier::Browsing, 36.0, ClassSet::NONE),
        class("details", Tier::Browsing, 73.0, ClassSet::NONE),
        class("login", Tier::Transaction, 3650.0, ClassSet::NONE),
        class("shipping", Tier::Transaction, 4050.0, requires(LOGIN)),
        class("payment", Tier::Transaction, 4500.0, requires(SHIPPING)),
        class("confirm", Tier::Transaction, 5000.0, requires(PAYMENT)),
    ]
}

/// Creates an engine with the scheduler `policy` and the given parameters, for `classes`.
pub(crate) fn engine(
    policy: &str,
    given: &[(&str, &str)],
    classes: Vec<Class>,
    options: Options,
) -> Engine {
    let policy = catalog::find(policy).expect("the policy is in the catalogue");
    let settings = policy.settings(given.iter().copied()).expect("the parameters are right");
    let scheduler = settings.scheduler(&classes);
    Engine::new(classes, scheduler, options)
}

/// A driver of one engine. Requests are numbered in the order of arrival.
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    pub(crate) log: Vec<Action>,
    arrived: u32,
    running: Vec<RequestId>,
}

impl Site {
    /// Creates a site with one slot, and with defaults for the parameters that are not given.
    pub(crate) fn new(policy: &str, given: &[(&str, &str)]) -> Self {
        Self::with(policy, given, classes(), Options { limit: 1.into(), ..Options::default() })
    }

    pub(crate) fn with(
        policy: &str,
        given: &[(&str, &str)],
        classes: Vec<Class>,
        options: Options,
    ) -> Self {
        Self {
            engine: engine(policy, given, classes, options),
            now: Time::ZERO,
            log: Vec::new(),
            arrived: 0,
            running: Vec::new(),
        }
    }

    /// Creates a site whose only slot is taken, so that the next request has to wait.
    pub(crate) fn busy(policy: &str, given: &[(&str, &str)]) -> Self {
        let mut site = Self::new(policy, given);
        site.arrive(MAIN);
        site
    }

    /// Sends `event` to the engine, and logs and returns the engine's actions.
    pub(crate) fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.engine.on_event(self.now, event, &mut actions);
        self.obey(&actions);
        actions
    }

    /// Applies a new configuration. If `scheduler` is `None`, the present scheduler stays.
    pub(crate) fn reconfigure(
        &mut self,
        classes: Vec<Class>,
        scheduler: Option<&Settings>,
        options: Options,
    ) -> Vec<Action> {
        let scheduler = scheduler.map(|settings| settings.scheduler(&classes));
        let mut actions = Vec::new();
        self.engine.reconfigure(self.now, classes, scheduler, options, &mut actions);
        self.obey(&actions);
        actions
    }

    /// Sets the number of slots, and resets the other options to their defaults.
    pub(crate) fn limit(&mut self, slots: u32) -> Vec<Action> {
        let options = Options { limit: slots.into(), ..Options::default() };
        self.reconfigure(self.engine.classes().to_vec(), None, options)
    }

    pub(crate) fn obey(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Dispatch { id, .. } => self.running.push(*id),
                Action::Cancel { id, .. } | Action::Terminate { id, .. } => {
                    self.running.retain(|other| other != id);
                }
                Action::Shed { .. } => {}
            }
        }
        self.log.extend(actions);
    }

    pub(crate) fn request(&mut self, request: Request) -> RequestId {
        let id = RequestId(self.arrived);
        self.arrived += 1;
        self.tell(Event::Arrived { id, request });
        id
    }

    /// Makes a request without a session or an address.
    pub(crate) fn arrive(&mut self, class: ClassId) -> RequestId {
        self.request(Request::of(class))
    }

    /// Makes a request that claims a session.
    pub(crate) fn arrive_in(&mut self, session: u64, class: ClassId) -> RequestId {
        self.request(Request { session: Some(SessionKey(session)), ..Request::of(class) })
    }

    /// Makes a request from an address, without a session.
    pub(crate) fn arrive_from(&mut self, address: u64, class: ClassId) -> RequestId {
        self.request(Request { address: Some(AddressKey(address)), ..Request::of(class) })
    }

    /// Reports that the session was served these classes.
    pub(crate) fn prove(&mut self, session: u64, walked: &[ClassId]) {
        for class in walked {
            self.tell(Event::served(SessionKey(session), *class));
        }
    }

    /// Answers the request that has run longest. Returns the request that gets its slot, and the
    /// reason; `None` if none waits.
    pub(crate) fn finish(&mut self) -> Option<(RequestId, Reason)> {
        let id = self.running.remove(0);
        let actions = self.tell(Event::Finished { id, end: End::ANSWERED });
        actions.iter().find_map(|action| match action {
            Action::Dispatch { id, reason } => Some((*id, *reason)),
            Action::Shed { .. } | Action::Cancel { .. } | Action::Terminate { .. } => None,
        })
    }

    /// Answers the request that has run longest, and returns the request that gets its slot.
    pub(crate) fn next(&mut self) -> RequestId {
        self.finish().expect("somebody waits").0
    }

    /// Answers requests until none waits. Returns those that got the slot, in order.
    pub(crate) fn drain(&mut self) -> Vec<RequestId> {
        std::iter::from_fn(|| self.finish().map(|(id, _)| id)).collect()
    }

    pub(crate) fn leave(&mut self, id: RequestId) -> Vec<Action> {
        self.tell(Event::ClientGone { id })
    }

    pub(crate) fn cpu(&mut self, share: f64) {
        self.tell(Event::Read(Reading { meter: Meter::Cpu, share: Ratio::new(share) }));
    }

    /// Lets `span` pass, and calls the engine's timer whenever it is due.
    pub(crate) fn pass(&mut self, span: TimeSpan) {
        let then = self.now + span;
        while let Some(due) = self.engine.next_timer().filter(|due| *due <= then) {
            self.now = self.now.max(due);
            let mut actions = Vec::new();
            self.engine.on_timer(self.now, &mut actions);
            assert!(!actions.is_empty(), "the timer was due and nothing came of it");
            self.obey(&actions);
        }
        self.now = then;
    }

    /// Lets time pass until `then`. In contrast to `pass`, the engine's timer may lead to no
    /// action, as that of a concurrency limit does.
    pub(crate) fn run_to(&mut self, then: Time) {
        while let Some(due) = self.engine.next_timer().filter(|due| *due <= then) {
            self.now = self.now.max(due);
            let mut actions = Vec::new();
            self.engine.on_timer(self.now, &mut actions);
            self.obey(&actions);
        }
        self.now = then;
    }

    pub(crate) fn status(&self) -> Status {
        self.engine.status(self.now)
    }

    /// Returns the reason for which this request was refused; `None` if it was not.
    pub(crate) fn refusal(&self, id: RequestId) -> Option<Reason> {
        self.log.iter().find_map(|action| match action {
            Action::Shed { id: shed, reason, .. } if *shed == id => Some(*reason),
            _ => None,
        })
    }

    /// Returns the reason for which this request was stopped while it ran; `None` if it was not.
    pub(crate) fn stopped(&self, id: RequestId) -> Option<Reason> {
        self.log.iter().find_map(|action| match action {
            Action::Terminate { id: stopped, reason, .. } if *stopped == id => Some(*reason),
            _ => None,
        })
    }
}
