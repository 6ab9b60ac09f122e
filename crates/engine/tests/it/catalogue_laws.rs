//! Laws that every policy of the catalogue must keep, whatever its parameters and whatever happens.
//! A model of the waiting and running requests checks each action of the engine.

use std::cell::Cell;

use bywash_engine::{
    Action, AddressKey, Class, ClassId, End, Engine, Event, Meter, Reading, Reason, Request,
    RequestId, SessionKey, Standing, Status, Tier,
};
use bywash_units::{Ratio, Time, TimeSpan};

use crate::cases::{Case, Step, for_every_policy, for_every_policy_and_reloads};
use crate::dice::Dice;
use crate::runners::{self, Runner};
use crate::setup::Setup;

#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: RequestId,
    class: ClassId,
    standing: Standing,
    principal: Option<(&'static str, u64)>,
    since: Time,
}

/// The operation that is applied to the engine after each step of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Between {
    Nothing,
    /// The engine is reconfigured with its present settings.
    Reconfigured,
    /// The engine is reconfigured with its present settings, and the waiting requests move to a
    /// fresh scheduler.
    Moved,
}

/// The model of an engine: its waiting requests in the order of arrival, and its running requests.
struct Model {
    setup: Setup,
    engine: Engine,
    between: Between,
    now: Time,
    waiting: Vec<Waiter>,
    running: Vec<Runner>,
    arrived: usize,
    ended: usize,
    log: Vec<Action>,
    states: Vec<Status>,
}

impl Model {
    fn new(case: &Case, between: Between) -> Self {
        Self {
            engine: case.setup.engine(),
            setup: case.setup.clone(),
            between,
            now: Time::ZERO,
            waiting: Vec::new(),
            running: Vec::new(),
            arrived: 0,
            ended: 0,
            log: Vec::new(),
            states: Vec::new(),
        }
    }

    fn limit(&self) -> u32 {
        self.setup.options.limit.count("slots")
    }

    /// Returns the number of places where requests of this class wait, and the number that are
    /// taken. The arriving request `new` does not count.
    fn room(&self, class: ClassId, new: RequestId) -> (usize, usize) {
        let others = self.waiting.iter().filter(|other| other.id != new);
        if let Some(capacity) = self.setup.count("capacity") {
            return (capacity, others.count());
        }
        let Class { tier, queue, .. } = &self.setup.classes[class.index()];
        let capacity = match tier {
            Tier::Transaction => "transaction_capacity",
            Tier::Browsing => "browsing_capacity",
        };
        let places = queue.map(|places| places as usize).or(self.setup.count(capacity));
        let places = places.expect("a policy bounds its queue, or one per class");
        (places, others.filter(|other| other.class == class).count())
    }

    fn is_free(&self, id: RequestId) -> bool {
        self.running.iter().all(|runner| runner.id != id)
            && self.waiting.iter().all(|waiter| waiter.id != id)
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
                let id = self.running.remove(index).id;
                self.ended += 1;
                let actions = self.tell(Event::ClientGone { id });
                let cancel = Action::Cancel { id, reason: Reason::ClientLeft };
                assert_eq!(actions.first(), Some(&cancel), "it ran");
                self.follow(&actions[1..], None);
            }
            Step::Finish(who, answered) => {
                let Some(index) = counted_off(self.running.len(), who) else { return };
                let id = self.running.remove(index).id;
                self.ended += 1;
                let end = if answered { End::ANSWERED } else { End::Failed };
                let actions = self.tell(Event::Finished { id, end });
                self.follow(&actions, None);
            }
            Step::OutOfTime(who) => self.out_of_time(who),
            Step::Answering(who) => {
                let Some(index) = counted_off(self.running.len(), who) else { return };
                self.running[index].cancellable = false;
                let id = self.running[index].id;
                assert_eq!(self.tell(Event::Answering { id }), []);
            }
            Step::Late(who) => {
                let id = RequestId(u32::from(who));
                if self.is_free(id) {
                    assert_eq!(self.tell(Event::ClientGone { id }), [], "{id:?} is not in use");
                    let over = Event::Finished { id, end: End::ANSWERED };
                    assert_eq!(self.tell(over), [], "{id:?} is not in use");
                }
            }
            Step::Serve(session, class) => {
                let session = SessionKey(u64::from(session));
                assert_eq!(self.tell(Event::served(session, ClassId(class))), []);
            }
            Step::Cpu(share) => {
                assert_eq!(
                    self.tell(Event::Read(Reading { meter: Meter::Cpu, share: Ratio::new(share) })),
                    []
                );
            }
            Step::Limit(limit) => {
                let mut new = self.setup.clone();
                new.options.limit = limit.into();
                self.reconfigure(new);
            }
            Step::Pass(ms, timer) => {
                self.now = self.now + TimeSpan::from_millis(ms);
                if timer {
                    self.timer();
                }
            }
            Step::Reconfigure(seed) => self.reconfigure(self.setup.changed(&mut Dice::new(seed))),
        }
        self.check();
        if self.between != Between::Nothing {
            self.reconfigure_with_the_same();
            self.check();
        }
        self.states.push(self.engine.status(self.now));
    }

    fn reconfigure_with_the_same(&mut self) {
        let Setup { settings, options, classes } = self.setup.clone();
        let scheduler = match self.between {
            Between::Moved => Some(settings.scheduler(&classes)),
            Between::Nothing | Between::Reconfigured => {
                settings.changed_scheduler(&classes, &settings, &classes)
            }
        };
        let mut actions = Vec::new();
        self.engine.reconfigure(self.now, classes, scheduler, options, &mut actions);
        assert_eq!(actions, [], "who had a place has one");
    }

    fn reconfigure(&mut self, new: Setup) {
        let Setup { settings, classes, .. } = &self.setup;
        let scheduler = new.settings.changed_scheduler(&new.classes, settings, classes);
        let (moves, mut actions) = (scheduler.is_some(), Vec::new());
        let (classes, options) = (new.classes.clone(), new.options.clone());
        self.engine.reconfigure(self.now, classes, scheduler, options, &mut actions);
        self.log.extend(&actions);
        self.setup.options.limit = new.options.limit.clone();
        let presumed =
            |action: &Action| matches!(action, Action::Shed { reason: Reason::WaitedTooLong, .. });
        let starts =
            |action: &&Action| matches!(action, Action::Dispatch { .. }) || presumed(action);
        let started = actions.iter().take_while(starts).count();
        self.follow(&actions[..started], None);
        self.setup = new;
        assert!(moves || actions.len() == started, "who stays in the same queue is not refused");
        self.lose_places(&actions[started..]);
    }

    /// Checks a move to a new scheduler: exactly the requests for which it has no place are
    /// refused.
    fn lose_places(&mut self, actions: &[Action]) {
        let before: Vec<RequestId> = self.waiting.iter().map(|waiter| waiter.id).collect();
        let refused: Vec<Waiter> =
            actions.iter().map(|action| self.waiter(lost(*action))).collect();
        for waiter in &refused {
            self.take_waiting(waiter.id);
            self.ended += 1;
        }
        let position = |id: RequestId| before.iter().position(|other| *other == id);
        for Waiter { id, class, standing, principal, .. } in refused {
            assert!(self.running.len() as u32 >= self.limit(), "{id:?} could have had a slot");
            let (places, taken) = self.room(class, id);
            let same = self.waiting.iter().filter(|other| other.principal == principal).count();
            let cap = self.setup.count("principal_cap").filter(|_| principal.is_some());
            let capped = cap.is_some_and(|cap| same >= cap);
            if self.setup.ranks() {
                assert!(capped || taken == places, "there was a place for {id:?}");
                let worse = self.waiting.iter().any(|other| other.standing > standing);
                assert!(capped || !worse, "{id:?} was better than one that stayed");
            } else {
                assert_eq!(taken, places, "there was a place for {id:?}");
                let whole = self.setup.count("capacity").is_some();
                let mut rivals = self.waiting.iter().filter(|other| whole || other.class == class);
                let older = |other: &Waiter| position(other.id) < position(id);
                assert!(rivals.all(older), "{id:?} was there before one that stayed");
            }
        }
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.engine.on_event(self.now, event, &mut actions);
        self.log.extend(&actions);
        actions
    }

    fn arrive(&mut self, class: u8, session: Option<u8>, address: Option<u8>) {
        let id = self.free_number();
        let class = ClassId(class % self.setup.classes.len() as u8);
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
        let actions = self.tell(Event::Arrived {
            id,
            request: Request { session, address, ..Request::of(class) },
        });
        self.follow(&actions, Some(id));
    }

    /// Sends the event that a request has reached its deadline, if there is a request. For a
    /// running request the event has no effect.
    fn out_of_time(&mut self, who: u8) {
        if let Some(runner) = counted_off(self.running.len(), who) {
            let id = self.running[runner].id;
            assert_eq!(self.tell(Event::OutOfTime { id }), [], "it runs");
        }
        let Some(index) = counted_off(self.waiting.len(), who) else { return };
        let id = self.waiting.remove(index).id;
        self.ended += 1;
        let actions = self.tell(Event::OutOfTime { id });
        let shed: Vec<RequestId> = actions.iter().map(|action| expiry(*action)).collect();
        assert_eq!(shed, [id]);
    }

    fn timer(&mut self) {
        let mut actions = Vec::new();
        self.engine.on_timer(self.now, &mut actions);
        self.log.extend(&actions);
        let gives =
            |action: &Action| matches!(action, Action::Terminate { .. } | Action::Dispatch { .. });
        if let Some(last) = actions.iter().rposition(gives) {
            self.follow(&actions[..=last], None);
            self.expire(&actions[last + 1..]);
            return;
        }
        let due = self.setup.options.max_wait.map_or(0, |wait| {
            self.waiting.iter().take_while(|waiter| waiter.since + wait <= self.now).count()
        });
        let expired: Vec<RequestId> = self.waiting.drain(..due).map(|waiter| waiter.id).collect();
        self.ended += due;
        let shed: Vec<RequestId> = actions.iter().map(|action| expiry(*action)).collect();
        assert_eq!(shed, expired, "the oldest first, each at its time");
    }

    /// Checks the refusals that follow the last start or stop of a request in one call of the
    /// timer. Each refused request must have waited too long, or be one whose client has presumably
    /// left: the engine refuses those too when it looks for the next request to start.
    fn expire(&mut self, actions: &[Action]) {
        let is_due =
            |setup: &Setup, now, since| setup.options.max_wait.is_some_and(|w| since + w <= now);
        for action in actions {
            let id = expiry(*action);
            if !is_due(&self.setup, self.now, self.waiter(id).since) {
                self.may_presume_gone(id);
            }
            self.take_waiting(id);
            self.ended += 1;
        }
        let left = self.waiting.iter().any(|waiter| is_due(&self.setup, self.now, waiter.since));
        assert!(!left, "somebody has waited too long");
    }

    /// Applies the engine's actions to the model, and checks that each is allowed. `new` is the
    /// request that has just arrived, if any.
    fn follow(&mut self, actions: &[Action], new: Option<RequestId>) {
        let mut made_room = false;
        for action in actions {
            match *action {
                Action::Dispatch { id, reason } => {
                    assert!((self.running.len() as u32) < self.limit(), "{id:?} has no slot");
                    // The arriving request takes the place in the queue of the one that gets the
                    // slot.
                    let beside = new.filter(|_| std::mem::take(&mut made_room));
                    self.may_start(id, reason, new, beside);
                    let Waiter { class, standing, .. } = self.waiter(id);
                    self.take_waiting(id);
                    let runner = Runner::new(&self.setup, id, (class, standing), self.now);
                    self.running.push(runner);
                }
                Action::Shed { id, reason, retry_after } => {
                    assert!(is_polite(retry_after), "{retry_after}");
                    match (reason, new) {
                        (Reason::WaitedTooLong, _) => self.may_presume_gone(id),
                        (_, Some(new)) => self.may_refuse(id, reason, new),
                        (_, None) => panic!("only an arrival is a reason to refuse {id:?}"),
                    }
                    self.take_waiting(id);
                    self.ended += 1;
                }
                Action::Cancel { id, .. } => panic!("the client of {id:?} is still there"),
                Action::Terminate { id, reason, retry_after } => {
                    assert!(is_polite(retry_after), "{retry_after}");
                    assert!(new.is_none() || self.running.len() as u32 == self.limit());
                    self.may_stop(id, reason, new);
                    made_room = true;
                }
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

    fn may_stop(&mut self, id: RequestId, reason: Reason, new: Option<RequestId>) {
        let index = self.running.iter().position(|runner| runner.id == id);
        let runner = self.running.remove(index.unwrap_or_else(|| panic!("{id:?} does not run")));
        let new = new.map(|new| self.waiter(new).standing);
        runner.may_be_stopped(&self.setup, self.now, reason, new);
        self.ended += 1;
    }

    /// Checks that a request may start. `beside` is a waiting request that is left out of the
    /// check.
    fn may_start(
        &self,
        id: RequestId,
        reason: Reason,
        new: Option<RequestId>,
        beside: Option<RequestId>,
    ) {
        let waiter = self.waiter(id);
        // If another request was stopped for `id`, `id` itself may start.
        let beside = beside.filter(|beside| *beside != id);
        match reason {
            Reason::SlotFree => assert_eq!((self.waiting.len(), Some(id)), (1, new)),
            Reason::Best if self.setup.ranks() => {
                let better =
                    |other: &Waiter| other.standing < waiter.standing && Some(other.id) != beside;
                assert!(!self.waiting.iter().any(better), "{id:?} is not of the best rank");
                let rank =
                    |other: &&Waiter| other.standing == waiter.standing && Some(other.id) != beside;
                let oldest = self.waiting.iter().find(rank).map(|other| other.id);
                let newest = self.waiting.iter().rfind(rank).map(|other| other.id);
                assert!([oldest, newest].contains(&Some(id)), "{id:?} is inside its rank");
            }
            Reason::FloorShare => assert!(self.setup.ranks()),
            Reason::Best => {}
            other => panic!("{other:?} is no reason to start"),
        }
    }

    /// Checks that a request may be refused because its client has presumably left. That is allowed
    /// only if no departures are seen and the request has waited for half of the patience.
    fn may_presume_gone(&self, id: RequestId) {
        let waiter = self.waiter(id);
        let patience =
            self.setup.span("patience").expect("only ranked schedulers presume anything");
        assert!(self.now.since(waiter.since) > patience / 2, "{id:?} has not waited long");
        assert_ne!(waiter.standing, Standing::Transaction, "{id:?} is worth waiting for");
    }

    fn may_refuse(&self, id: RequestId, reason: Reason, new: RequestId) {
        let (waiter, arriving) = (self.waiter(id), self.waiter(new));
        let (places, taken) = self.room(arriving.class, new);
        let worst = self.waiting.iter().filter(|other| other.id != new);
        let worst = worst.map(|other| other.standing).max();
        match reason {
            Reason::QueueFull => {
                assert_eq!((id, taken), (new, places), "it was full for the arriving one");
                if self.setup.ranks() {
                    assert!(worst <= Some(arriving.standing), "a worse one was left waiting");
                }
            }
            Reason::Evicted => {
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
                    waiter.principal.is_some() && Some(others) >= self.setup.count("principal_cap")
                );
            }
            other => panic!("{other:?} is no reason to refuse"),
        }
    }

    /// Checks the invariants that hold after every event.
    fn check(&self) {
        let (waiting, running) = (self.waiting.len() as u32, self.running.len() as u32);
        assert!(waiting == 0 || running >= self.limit(), "{waiting} wait while a slot is free");
        let status = self.engine.status(self.now);
        let counts = (status.limit, status.running, status.waiting, self.engine.running());
        assert_eq!(counts, (self.limit(), running, waiting, running));
        let oldest = self.waiting.first();
        assert_eq!(status.oldest, oldest.map_or(TimeSpan::ZERO, |one| self.now.since(one.since)));
        assert!(status.sessions <= self.setup.options.sessions);
        let due = oldest.and_then(|one| Some(one.since + self.setup.options.max_wait?));
        let overdue = runners::next_overdue(&self.running, &self.setup);
        match (self.engine.next_timer(), runners::timer(due, overdue)) {
            (None, None) => {}
            (Some(timer), Some(range)) if range.contains(&timer) => {}
            other => panic!("the timer, and when it must be: {other:?}"),
        }
        for class in (0..self.setup.classes.len() as u8).map(ClassId) {
            let of_class = self.waiting.iter().filter(|one| one.class == class).count() as u32;
            assert_eq!(self.engine.waiting_of(class), of_class, "{class:?}");
            let (places, taken) = self.room(class, RequestId(u32::MAX));
            assert!(taken <= places, "{taken} wait in {places} places");
        }
        if let Some(cap) = self.setup.count("principal_cap") {
            for principal in self.waiting.iter().filter_map(|one| one.principal) {
                let its = self.waiting.iter().filter(|one| one.principal == Some(principal));
                assert!(its.count() <= cap, "{principal:?} is over its cap");
            }
        }
    }

    /// Ends a case: gives every waiting request a slot.
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

fn is_polite(retry_after: TimeSpan) -> bool {
    (TimeSpan::from_secs(1)..=TimeSpan::from_secs(32)).contains(&retry_after)
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

fn lost(action: Action) -> RequestId {
    match action {
        Action::Shed { id, reason: Reason::Reconfigured, retry_after } => {
            assert!(is_polite(retry_after), "{retry_after}");
            id
        }
        other => panic!("a new configuration must not order {other:?}"),
    }
}

/// Plays a case against the model, and returns the engine's actions in order.
pub(crate) fn play(case: &Case) -> Vec<Action> {
    play_with(case, Between::Nothing).0
}

/// Plays a case, and applies `between` after each step. Returns the engine's actions, and the
/// engine's status after each step.
pub(crate) fn play_with(case: &Case, between: Between) -> (Vec<Action>, Vec<Status>) {
    let mut model = Model::new(case, between);
    model.check();
    for step in &case.steps {
        model.step(step);
    }
    model.wind_up();
    (model.log, model.states)
}

#[test]
fn every_policy_agrees_with_the_model_whatever_happens() {
    let (overdue, preempted) = (Cell::new(0), Cell::new(0));
    for_every_policy(64, 3_000, |case| {
        for action in play(case) {
            let Action::Terminate { reason, .. } = action else { continue };
            let count = if reason == Reason::Preempted { &preempted } else { &overdue };
            count.set(count.get() + 1);
        }
    });
    let seen = (overdue.get(), preempted.get());
    assert!(seen.0 > 100 && seen.1 > 100, "both must happen: {seen:?}");
}

#[test]
fn every_policy_agrees_with_the_model_however_often_it_is_reconfigured() {
    for_every_policy_and_reloads(64, 2_000, |case| drop(play(case)));
}

#[test]
fn who_moves_to_a_scheduler_of_the_same_settings_keeps_its_place() {
    for_every_policy_and_reloads(16, 1_500, |case| drop(play_with(case, Between::Moved)));
}
