//! One run: visitors, servers and the engine between them.

use bywash_engine::catalog::Settings;
use bywash_engine::{
    Action, AddressKey, AttemptKey, Class, ClassId, ClassSet, End, Engine, Event, Options, Reading,
    Request, RequestId, SessionKey, Signals, Tier,
};
use bywash_scenario::arrivals::Starts;
use bywash_scenario::{Closes, Ending, Next, Scenario, Tally, Visitor, WaitsFor};
use bywash_units::{Share, Span, Time, Utility};

use crate::events::{Events, Happening};

/// What is to be played.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The load.
    pub scenario: &'a Scenario,
    /// The policy.
    pub settings: &'a Settings,
    /// The level of load.
    pub rho: f64,
    /// Whether departures are seen.
    pub closes: Closes,
    /// Which visitors.
    pub seed: u64,
}

/// What a run yields.
#[derive(Clone, Debug)]
pub struct Outturn {
    /// Counts, work and revenue.
    pub tally: Tally,
    /// Requests that got a server.
    pub started: u64,
    /// Those of them that had to wait for it.
    pub delayed: u64,
    /// How long they waited, all together.
    pub waited: Span,
    /// Events of the run.
    pub events: u64,
}

/// A request in the world. The engine knows it by its index.
#[derive(Clone, Copy, Debug)]
struct Live {
    visitor: u32,
    session: SessionKey,
    /// It names its session: its visitor has a cookie.
    claims: bool,
    class: usize,
    signals: Signals,
    demand: Span,
    made: Time,
    started: Option<Time>,
    /// Its client has given up and nobody could see it.
    abandoned: bool,
    /// Changes with every use of the slot; events that name another are void.
    serial: u64,
}

impl Live {
    /// The session that its answer belongs to. The answer to a request without a cookie begins a
    /// session; if nobody reads it, one that nobody will ever name.
    const fn served_session(&self) -> SessionKey {
        let unread = self.abandoned && !self.claims;
        if unread { SessionKey(u64::MAX - self.serial) } else { self.session }
    }
}

/// A visitor in the world.
#[derive(Debug)]
struct Guest {
    /// Which visitor of the run: the name of her session, and of her address.
    number: u64,
    visitor: Visitor,
    /// She has read an answer, and with it got her session's cookie.
    cookie: bool,
}

struct World<'a> {
    case: Case<'a>,
    now: Time,
    events: Events,
    starts: Starts,
    sessions: u64,
    arrivals_over: bool,
    visitors: Slots<Guest>,
    requests: Slots<Live>,
    serial: u64,
    engine: Engine,
    actions: Vec<Action>,
    timer: Option<Time>,
    cpu: CpuMeter,
    out: Outturn,
}

/// Plays one case to its end.
pub fn play(case: Case<'_>) -> Outturn {
    let mut world = World::new(case);
    world.start();
    while let Some((at, what)) = world.events.next() {
        world.now = at;
        world.happen(what);
    }
    world.out.events = world.events.count();
    world.out
}

impl<'a> World<'a> {
    fn new(case: Case<'a>) -> Self {
        let Case { scenario, rho, seed, .. } = case;
        let duration = scenario.duration(rho);
        let classes = engine_classes(scenario);
        let order = case.settings.order(&classes);
        let options = Options {
            limit: scenario.workers.into(),
            max_wait: scenario.max_wait,
            ..Options::default()
        };
        Self {
            starts: Starts::new(&scenario.profile, rho, scenario.unit_rate(), duration, seed),
            engine: Engine::new(classes, order, options),
            out: Outturn {
                tally: Tally::new(scenario, rho, duration),
                started: 0,
                delayed: 0,
                waited: Span::ZERO,
                events: 0,
            },
            case,
            now: Time::ZERO,
            events: Events::default(),
            sessions: 0,
            arrivals_over: false,
            visitors: Slots::default(),
            requests: Slots::default(),
            serial: 0,
            actions: Vec::new(),
            timer: None,
            cpu: CpuMeter::default(),
        }
    }

    fn start(&mut self) {
        self.schedule_next_session();
        if let Some((_, interval)) = self.engine.meter() {
            self.events.schedule(Time::ZERO + interval, Happening::CpuReading);
        }
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::SessionStarts => self.session_starts(),
            Happening::Attempt { visitor } => self.attempt(visitor),
            Happening::ServiceEnds { request, serial } => self.service_ends(request, serial),
            Happening::PatienceEnds { request, serial } => self.patience_ends(request, serial),
            Happening::EngineTimer => self.engine_timer(),
            Happening::CpuReading => self.cpu_reading(),
        }
    }

    fn schedule_next_session(&mut self) {
        match self.starts.next() {
            Some(at) => self.events.schedule(at, Happening::SessionStarts),
            None => self.arrivals_over = true,
        }
    }

    fn session_starts(&mut self) {
        let Case { scenario, rho, seed, .. } = self.case;
        let visitor = Visitor::new(scenario, seed, self.sessions);
        let rho_now = scenario.profile.rho_at(rho, self.now);
        self.out.tally.session(scenario, &visitor, rho_now);
        let guest = Guest { number: self.sessions, visitor, cookie: false };
        let visitor = self.visitors.put(guest);
        self.sessions += 1;
        self.attempt(visitor);
        self.schedule_next_session();
    }

    fn attempt(&mut self, number: u32) {
        let guest = self.visitors.get_mut(number);
        let (session, claims) = (SessionKey(guest.number), guest.cookie);
        let carried = guest.visitor.signals().iter();
        let signals = carried.fold(Signals::NONE, |all, kind| all.with(*kind));
        let attempt = guest.visitor.attempt(self.case.scenario);
        let request = Request {
            session: claims.then_some(session),
            address: Some(AddressKey(guest.number)),
            signals,
            attempt: Some(AttemptKey(session.0 << 8 | attempt.class as u64)),
            ..Request::of(ClassId(attempt.class as u8))
        };
        self.serial += 1;
        let id = self.requests.put(Live {
            visitor: number,
            session,
            claims,
            class: attempt.class,
            signals,
            demand: attempt.demand,
            made: self.now,
            started: None,
            abandoned: false,
            serial: self.serial,
        });
        self.out.tally.generated(attempt.class, self.now);
        if attempt.patience < Span::MAX {
            let end = Happening::PatienceEnds { request: id, serial: self.serial };
            self.events.schedule(self.now + attempt.patience, end);
        }
        self.tell(Event::Arrived { id: RequestId(id), request });
    }

    fn service_ends(&mut self, id: u32, serial: u64) {
        let Some(live) = self.requests.get(id).filter(|live| live.serial == serial) else { return };
        let live = *live;
        self.work_done(&live, live.demand);
        self.requests.free(id);
        if !live.abandoned {
            self.ended(&live, Ending::Completed);
        }
        self.tell(Event::Served {
            session: live.served_session(),
            class: ClassId(live.class as u8),
            signals: live.signals,
            earned: worth(self.case.scenario, live.class),
            in_time: !live.abandoned,
        });
        self.tell(Event::Finished { id: RequestId(id), end: End::Answered });
    }

    fn patience_ends(&mut self, id: u32, serial: u64) {
        let Some(live) = self.requests.get(id).filter(|live| live.serial == serial) else { return };
        let live = *live;
        let stays = self.case.scenario.client.waits_for == WaitsFor::Service;
        if stays && live.started.is_some() {
            return;
        }
        match self.case.closes {
            Closes::Hidden => self.requests.get_mut(id).abandoned = true,
            Closes::Visible => {
                if let Some(started) = live.started {
                    self.out.tally.wasted(self.now, self.now.since(started));
                }
                self.requests.free(id);
                self.tell(Event::ClientGone { id: RequestId(id) });
            }
        }
        self.ended(&live, Ending::TimedOut);
    }

    /// A request ended for its client; what does she do now?
    fn ended(&mut self, live: &Live, ending: Ending) {
        let response = self.now.since(live.made);
        self.out.tally.ended(live.class, self.now, response, ending);
        let guest = self.visitors.get_mut(live.visitor);
        guest.cookie |= ending == Ending::Completed;
        match guest.visitor.ended(self.case.scenario, ending) {
            Next::After(pause) => {
                let again = Happening::Attempt { visitor: live.visitor };
                self.events.schedule(self.now + pause, again);
            }
            Next::Gone { not_generated } => {
                self.out.tally.session_over(not_generated);
                self.visitors.free(live.visitor);
            }
        }
    }

    fn work_done(&mut self, live: &Live, work: Span) {
        if live.abandoned {
            self.out.tally.wasted(self.now, work);
        } else {
            self.out.tally.useful(self.now, work);
        }
    }

    /// Tells the engine and does what it says.
    fn tell(&mut self, event: Event) {
        self.cpu.advance(self.now, self.engine.running());
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.on_event(self.now, event, &mut actions);
        self.carry_out(actions);
    }

    fn engine_timer(&mut self) {
        self.timer = None;
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.on_timer(self.now, &mut actions);
        self.carry_out(actions);
    }

    fn carry_out(&mut self, mut actions: Vec<Action>) {
        for action in actions.drain(..) {
            match action {
                Action::Dispatch { id, .. } => self.dispatch(id.0),
                Action::Shed { id, .. } => self.shed(id.0),
                // The client has left and the world has accounted for it in `patience_ends`.
                Action::Cancel { .. } => {}
            }
        }
        self.actions = actions;
        let next = self.engine.next_timer();
        if next.is_some() && (self.timer.is_none() || next < self.timer) {
            self.timer = next;
            self.events.schedule(next.unwrap_or(self.now), Happening::EngineTimer);
        }
    }

    fn dispatch(&mut self, id: u32) {
        let now = self.now;
        let live = self.requests.get_mut(id);
        live.started = Some(now);
        let waited = now.since(live.made);
        let end = Happening::ServiceEnds { request: id, serial: live.serial };
        self.events.schedule(now + live.demand, end);
        self.out.started += 1;
        self.out.delayed += u64::from(waited > Span::ZERO);
        self.out.waited += waited;
    }

    fn shed(&mut self, id: u32) {
        let live = *self.requests.get_mut(id);
        self.requests.free(id);
        if !live.abandoned {
            self.ended(&live, Ending::Dropped);
        }
    }

    fn cpu_reading(&mut self) {
        let Some((meter, interval)) = self.engine.meter() else { return };
        self.cpu.advance(self.now, self.engine.running());
        let share = self.cpu.take(interval * u64::from(self.case.scenario.workers));
        self.tell(Event::Read(Reading { meter, share }));
        if !self.arrivals_over || self.visitors.in_use() > 0 {
            self.events.schedule(self.now + interval, Happening::CpuReading);
        }
    }
}

/// Busy time of the servers since the last reading.
#[derive(Debug, Default)]
struct CpuMeter {
    last: Time,
    busy: Span,
}

impl CpuMeter {
    /// Up to `now`, `running` servers have been busy since the last call.
    fn advance(&mut self, now: Time, running: u32) {
        self.busy += now.since(self.last) * u64::from(running);
        self.last = now;
    }

    /// The share of `whole` that was busy; starts a new interval.
    fn take(&mut self, whole: Span) -> Share {
        let busy = std::mem::take(&mut self.busy);
        Share::new(busy.as_secs_f64() / whole.as_secs_f64())
    }
}

fn engine_classes(scenario: &Scenario) -> Vec<Class> {
    let class = |(index, class): (usize, &bywash_scenario::file::Class)| Class {
        name: class.name.clone(),
        tier: match class.tier {
            bywash_scenario::Tier::Transact => Tier::Transact,
            bywash_scenario::Tier::Browse => Tier::Browse,
        },
        utility: class.utility,
        earns: worth(scenario, index),
        pinned: None,
        queue: class.queue,
        after: class.after.iter().fold(ClassSet::NONE, |set, i| set.with(ClassId(*i as u8))),
    };
    scenario.classes.iter().enumerate().map(class).collect()
}

/// What an answer of this class brings: an order counts as one, everything else as nothing.
fn worth(scenario: &Scenario, class: usize) -> Utility {
    Utility::new(if class == scenario.graph.order { 1.0 } else { 0.0 })
}

/// A slab: numbers that are dense and used again.
#[derive(Debug)]
struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    fn put(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(value);
            return number;
        }
        self.slots.push(Some(value));
        self.slots.len() as u32 - 1
    }

    fn get(&self, number: u32) -> Option<&T> {
        self.slots[number as usize].as_ref()
    }

    fn get_mut(&mut self, number: u32) -> &mut T {
        self.slots[number as usize].as_mut().expect("the world names only what is in it")
    }

    fn free(&mut self, number: u32) {
        self.slots[number as usize] = None;
        self.free.push(number);
    }

    fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
