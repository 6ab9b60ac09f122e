//! Laws that every policy of the catalogue must keep, whatever its parameters and whatever
//! happens: a model knows who waits and who runs, and checks each order that the engine gives.
//!
//! A failure prints the shortest sequence of events that shows it, and the seed.

use bywash_engine::catalog::{Domain, POLICIES, Policy};
use bywash_engine::{
    Action, AddressKey, ClassId, End, Engine, Event, Options, Reading, Reason, Request, RequestId,
    SessionKey, Standing,
};
use bywash_units::{Share, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::dice::Dice;
use crate::site::{classes, engine};

/// Something that happens. Who it happens to is counted off among those it can happen to.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Arrive {
        class: u8,
        session: Option<u8>,
        address: Option<u8>,
    },
    LeaveWaiting(u8),
    LeaveRunning(u8),
    Finish(u8, bool),
    /// A message about a number that is not in use: it was late.
    Late(u8),
    Serve(u8, u8),
    Cpu(f64),
    Limit(u32),
    /// Time goes by, and the timer is called if it is due and the driver is not late.
    Pass(u64, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || prop::option::of(0..8_u8);
    prop_oneof![
        12 => (0..8_u8, who(), who())
            .prop_map(|(class, session, address)| Step::Arrive { class, session, address }),
        2 => any::<u8>().prop_map(Step::LeaveWaiting),
        1 => any::<u8>().prop_map(Step::LeaveRunning),
        6 => (any::<u8>(), any::<bool>()).prop_map(|(who, answered)| Step::Finish(who, answered)),
        1 => any::<u8>().prop_map(Step::Late),
        3 => (0..8_u8, 0..8_u8).prop_map(|(session, class)| Step::Serve(session, class)),
        1 => (0.0..=1.0).prop_map(Step::Cpu),
        1 => (0..5_u32).prop_map(Step::Limit),
        4 => (0..800_u64, prop::bool::weighted(0.8)).prop_map(|(ms, timer)| Step::Pass(ms, timer)),
    ]
}

/// One policy with parameters, and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) policy: &'static str,
    parameters: Vec<(&'static str, String)>,
    options: Options,
    steps: Vec<Step>,
}

/// Cases of up to `length` steps.
pub(crate) fn case(policy: &'static Policy, length: usize) -> impl Strategy<Value = Case> {
    let options = (0..5_u32, prop::option::of(1..5_000_u64), 1..8_u32, 1..20_u64).prop_map(
        |(limit, max_wait, sessions, ttl)| Options {
            limit,
            max_wait: max_wait.map(Span::from_millis),
            sessions,
            session_ttl: Span::from_secs(ttl),
        },
    );
    (any::<u64>(), options, prop::collection::vec(step(), 1..length)).prop_map(
        move |(seed, options, steps)| {
            let parameters = parameters(policy, &mut Dice::new(seed));
            Case { policy: policy.name, parameters, options, steps }
        },
    )
}

/// A value for each parameter; counts are small, so that queues fill.
fn parameters(policy: &'static Policy, dice: &mut Dice) -> Vec<(&'static str, String)> {
    let mut value = |domain: &Domain| match domain {
        Domain::Count { min, max, .. } => (min + dice.below(12) as u32).min(*max).to_string(),
        Domain::Share { min, max, .. } => (min + dice.share() * (max - min)).to_string(),
        Domain::Span { min, max, .. } => {
            let span = *min + Span::from_millis(dice.below(30_000));
            format!("{}ms", span.min(*max).as_millis())
        }
        Domain::Choice(words) => dice.pick(words).expect("a choice has words").to_string(),
    };
    policy.parameters.iter().map(|one| (one.name, value(&one.domain))).collect()
}

/// Runs `law` on random cases of every policy.
pub(crate) fn for_every_policy(cases: u32, length: usize, law: impl Fn(&Case)) {
    let mut config = Config { cases, failure_persistence: None, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(2004);
    }
    let seed = config.rng_seed;
    for policy in &POLICIES {
        let tried = TestRunner::new(config.clone()).run(&case(policy, length), |case| {
            law(&case);
            Ok(())
        });
        if let Err(failure) = tried {
            panic!("{} with {seed:?} (PROPTEST_RNG_SEED sets it): {failure}", policy.name);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: RequestId,
    class: ClassId,
    standing: Standing,
    principal: Option<(&'static str, u64)>,
    since: Time,
}

/// Who waits, in the order of arrival, and who runs.
struct Model<'a> {
    case: &'a Case,
    engine: Engine,
    now: Time,
    limit: u32,
    waiting: Vec<Waiter>,
    running: Vec<RequestId>,
    arrived: usize,
    ended: usize,
    log: Vec<Action>,
}

impl<'a> Model<'a> {
    fn new(case: &'a Case) -> Self {
        let given: Vec<(&str, &str)> = case.parameters.iter().map(|(n, v)| (*n, &**v)).collect();
        Self {
            case,
            engine: engine(case.policy, &given, classes(), case.options.clone()),
            now: Time::ZERO,
            limit: case.options.limit,
            waiting: Vec::new(),
            running: Vec::new(),
            arrived: 0,
            ended: 0,
            log: Vec::new(),
        }
    }

    fn parameter(&self, name: &str) -> Option<usize> {
        let text = self.case.parameters.iter().find(|(other, _)| *other == name);
        text.map(|(_, value)| value.parse().expect("it is a count"))
    }

    /// Places where this class waits, and how many are taken; `new` does not count.
    fn room(&self, class: ClassId, new: RequestId) -> (usize, usize) {
        let others = self.waiting.iter().filter(|other| other.id != new);
        if let Some(capacity) = self.parameter("capacity") {
            return (capacity, others.count());
        }
        let tier = classes()[class.index()].tier.name();
        let places = self.parameter(tier).expect("a policy bounds its queue, or one per class");
        (places, others.filter(|other| other.class == class).count())
    }

    fn is_free(&self, id: RequestId) -> bool {
        !self.running.contains(&id) && self.waiting.iter().all(|waiter| waiter.id != id)
    }

    fn free_number(&self) -> RequestId {
        let mut numbers =
            (0..=self.waiting.len() + self.running.len()).map(|n| RequestId(n as u32));
        numbers.find(|id| self.is_free(*id)).expect("one more number than requests")
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Arrive { class, session, address } => self.arrive(class, session, address),
            Step::LeaveWaiting(who) => {
                let Some(index) = counted_off(self.waiting.len(), who) else { return };
                let id = self.waiting.remove(index).id;
                self.ended += 1;
                assert_eq!(self.tell(Event::ClientGone { id }), [], "it only waited");
            }
            Step::LeaveRunning(who) => {
                let Some(index) = counted_off(self.running.len(), who) else { return };
                let id = self.running.remove(index);
                self.ended += 1;
                let actions = self.tell(Event::ClientGone { id });
                let cancel = Action::Cancel { id, reason: Reason::ClientLeft };
                assert_eq!(actions.first(), Some(&cancel), "it ran");
                self.follow(&actions[1..], None);
            }
            Step::Finish(who, answered) => {
                let Some(index) = counted_off(self.running.len(), who) else { return };
                let id = self.running.remove(index);
                self.ended += 1;
                let end = if answered { End::Answered } else { End::Failed };
                let actions = self.tell(Event::Finished { id, end });
                self.follow(&actions, None);
            }
            Step::Late(who) => {
                let id = RequestId(u32::from(who));
                if self.is_free(id) {
                    assert_eq!(self.tell(Event::ClientGone { id }), [], "{id:?} is not in use");
                    let over = Event::Finished { id, end: End::Answered };
                    assert_eq!(self.tell(over), [], "{id:?} is not in use");
                }
            }
            Step::Serve(session, class) => {
                let session = SessionKey(u64::from(session));
                assert_eq!(self.tell(Event::Served { session, class: ClassId(class) }), []);
            }
            Step::Cpu(share) => {
                assert_eq!(self.tell(Event::Read(Reading::Cpu(Share::new(share)))), []);
            }
            Step::Limit(limit) => {
                self.limit = limit;
                let actions = self.tell(Event::LimitChanged { limit });
                self.follow(&actions, None);
            }
            Step::Pass(ms, timer) => {
                self.now = self.now + Span::from_millis(ms);
                if timer {
                    self.timer();
                }
            }
        }
        self.check();
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.engine.on_event(self.now, event, &mut actions);
        self.log.extend(&actions);
        actions
    }

    fn arrive(&mut self, class: u8, session: Option<u8>, address: Option<u8>) {
        let id = self.free_number();
        let class = ClassId(class);
        let session = session.map(|key| SessionKey(u64::from(key)));
        let address = address.map(|key| AddressKey(u64::from(key)));
        let standing = self.engine.standing(self.now, session, class);
        let principal = match standing {
            Standing::New => address.map(|key| ("address", key.0)),
            Standing::InProgress => session.map(|key| ("browsing", key.0)),
            Standing::Transaction => session.map(|key| ("checkout", key.0)),
        };
        self.waiting.push(Waiter { id, class, standing, principal, since: self.now });
        self.arrived += 1;
        let actions =
            self.tell(Event::Arrived { id, request: Request { class, session, address } });
        self.follow(&actions, Some(id));
    }

    fn timer(&mut self) {
        let mut actions = Vec::new();
        self.engine.on_timer(self.now, &mut actions);
        self.log.extend(&actions);
        let due = self.case.options.max_wait.map_or(0, |wait| {
            self.waiting.iter().take_while(|waiter| waiter.since + wait <= self.now).count()
        });
        let expired: Vec<RequestId> = self.waiting.drain(..due).map(|waiter| waiter.id).collect();
        self.ended += due;
        let shed: Vec<RequestId> = actions.iter().map(|action| expiry(*action)).collect();
        assert_eq!(shed, expired, "the oldest first, each at its time");
    }

    /// Does what the engine says, if it may say so. `new` has just arrived.
    fn follow(&mut self, actions: &[Action], new: Option<RequestId>) {
        for action in actions {
            match *action {
                Action::Dispatch { id, reason } => {
                    assert!((self.running.len() as u32) < self.limit, "{id:?} has no slot");
                    self.may_start(id, reason, new);
                    self.take_waiting(id);
                    self.running.push(id);
                }
                Action::Shed { id, reason, retry_after } => {
                    assert!(is_polite(retry_after), "{retry_after}");
                    self.may_refuse(id, reason, new.expect("only an arrival is a reason"));
                    self.take_waiting(id);
                    self.ended += 1;
                }
                Action::Cancel { id, .. } => panic!("the client of {id:?} is still there"),
            }
        }
    }

    fn waiter(&self, id: RequestId) -> Waiter {
        let waiter = self.waiting.iter().find(|waiter| waiter.id == id);
        *waiter.unwrap_or_else(|| panic!("{id:?} does not wait"))
    }

    fn take_waiting(&mut self, id: RequestId) {
        self.waiter(id);
        self.waiting.retain(|waiter| waiter.id != id);
    }

    fn may_start(&self, id: RequestId, reason: Reason, new: Option<RequestId>) {
        let waiter = self.waiter(id);
        match reason {
            Reason::SlotFree => assert_eq!((self.waiting.len(), Some(id)), (1, new)),
            Reason::Best if self.case.policy == "session-first" => {
                let better = |other: &Waiter| other.standing < waiter.standing;
                assert!(!self.waiting.iter().any(better), "{id:?} is not of the best rank");
                let rank = |other: &&Waiter| other.standing == waiter.standing;
                let oldest = self.waiting.iter().find(rank).map(|other| other.id);
                let newest = self.waiting.iter().rfind(rank).map(|other| other.id);
                assert!([oldest, newest].contains(&Some(id)), "{id:?} is inside its rank");
            }
            Reason::FloorShare => assert_eq!(self.case.policy, "session-first"),
            Reason::Best => {}
            other => panic!("{other:?} is no reason to start"),
        }
    }

    fn may_refuse(&self, id: RequestId, reason: Reason, new: RequestId) {
        let (waiter, arriving) = (self.waiter(id), self.waiter(new));
        let (places, taken) = self.room(arriving.class, new);
        let worst = self.waiting.iter().filter(|other| other.id != new);
        let worst = worst.map(|other| other.standing).max();
        match reason {
            Reason::QueueFull => {
                assert_eq!((id, taken), (new, places), "it was full for the arriving one");
                if self.case.policy == "session-first" {
                    assert!(worst <= Some(arriving.standing), "a worse one was left waiting");
                }
            }
            Reason::PushedOut => {
                assert_ne!(id, new, "the arriving one was never in");
                assert_eq!(taken, places, "there was room");
                assert_eq!(Some(waiter.standing), worst, "{id:?} was not the worst");
                assert!(waiter.standing >= arriving.standing, "{id:?} was better");
            }
            Reason::PrincipalCap => {
                assert_eq!(id, new);
                let same = |other: &&Waiter| other.principal == waiter.principal;
                let others = self.waiting.iter().filter(same).count() - 1;
                assert!(
                    waiter.principal.is_some() && Some(others) >= self.parameter("principal_cap")
                );
            }
            other => panic!("{other:?} is no reason to refuse"),
        }
    }

    /// What must hold between any two events.
    fn check(&self) {
        let (waiting, running) = (self.waiting.len() as u32, self.running.len() as u32);
        assert!(waiting == 0 || running >= self.limit, "{waiting} wait while a slot is free");
        let status = self.engine.status(self.now);
        let counts = (status.limit, status.running, status.waiting, self.engine.running());
        assert_eq!(counts, (self.limit, running, waiting, running));
        let oldest = self.waiting.first();
        assert_eq!(status.oldest, oldest.map_or(Span::ZERO, |one| self.now.since(one.since)));
        assert!(status.sessions <= self.case.options.sessions);
        let due = oldest.and_then(|one| Some(one.since + self.case.options.max_wait?));
        assert_eq!(self.engine.next_timer(), due);
        for class in (0..classes().len() as u8).map(ClassId) {
            let of_class = self.waiting.iter().filter(|one| one.class == class).count() as u32;
            assert_eq!(self.engine.waiting_of(class), of_class, "{class:?}");
            let (places, taken) = self.room(class, RequestId(u32::MAX));
            assert!(taken <= places, "{taken} wait in {places} places");
        }
        if let Some(cap) = self.parameter("principal_cap") {
            for principal in self.waiting.iter().filter_map(|one| one.principal) {
                let its = self.waiting.iter().filter(|one| one.principal == Some(principal));
                assert!(its.count() <= cap, "{principal:?} is over its cap");
            }
        }
    }

    /// Everybody who waits gets a slot in the end.
    fn wind_up(&mut self) {
        self.step(&Step::Limit(4));
        while !self.running.is_empty() {
            self.step(&Step::Finish(0, true));
        }
        assert_eq!(self.ended, self.arrived, "each request ends once");
    }
}

fn counted_off(among: usize, number: u8) -> Option<usize> {
    usize::from(number).checked_rem(among)
}

fn is_polite(retry_after: Span) -> bool {
    (Span::from_secs(1)..=Span::from_secs(32)).contains(&retry_after)
}

fn expiry(action: Action) -> RequestId {
    match action {
        Action::Shed { id, reason: Reason::WaitedTooLong, retry_after } => {
            assert!(is_polite(retry_after), "{retry_after}");
            id
        }
        other => panic!("the timer must not order {other:?}"),
    }
}

/// Plays a case against the model; what the engine ordered, in order.
pub(crate) fn play(case: &Case) -> Vec<Action> {
    let mut model = Model::new(case);
    model.check();
    for step in &case.steps {
        model.step(step);
    }
    model.wind_up();
    model.log
}

#[test]
fn every_policy_agrees_with_the_model_whatever_happens() {
    for_every_policy(64, 3_000, |case| drop(play(case)));
}
