//! One run: visitors, servers and the engine between them.

use bywash_engine::catalog::{LimitSettings, Settings};
use bywash_engine::{
    Action, AddressKey, AttemptKey, Class, ClassId, ClassSet, End, Engine, Event, Meter, Options,
    Reading, Request, RequestId, SessionKey, Signals, Tier,
};
use bywash_scenario::arrivals::Starts;
use bywash_scenario::{Attempt, Closes, Ending, Next, Of, Scenario, Tally, Visitor, WaitsFor};
use bywash_units::{Share, Span, Time, Utility};

use crate::adversary::{Adversaries, Got, Hit};
use crate::events::{Events, Happening};
use crate::servers::{Meters, Servers};
use crate::slots::Slots;

/// What is to be played.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The load.
    pub scenario: &'a Scenario,
    /// The policy.
    pub settings: &'a Settings,
    /// What decides how many run at once.
    pub limit: &'a LimitSettings,
    /// The level of load.
    pub rho: f64,
    /// Whether departures are seen.
    pub closes: Closes,
    /// Which visitors.
    pub seed: u64,
    /// How often to write down how things stand, if at all.
    pub trace: Option<Trace>,
}

/// How things are to be written down.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// After every such step.
    pub every: Span,
    /// With what the engine has learned of what requests are worth.
    pub worths: bool,
}

/// How things stood over a step of time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The end of the step.
    pub at: Time,
    /// Slots then.
    pub slots: u32,
    /// Requests that waited for a slot then.
    pub waiting: u32,
    /// Work done in the step.
    pub work: Span,
    /// Work that all workers could have done.
    pub capacity: Span,
    /// Mean number of requests inside the application beyond one for each worker.
    pub inside: f64,
    /// Mean number of workers.
    pub workers: f64,
    /// By class: what the engine took a session to be worth that had come there, if that was asked
    /// for.
    pub worths: Vec<f64>,
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
    /// What adversaries got, if there were any; in nothing above but what started and waited.
    pub hostile: Option<Got>,
    /// Events of the run.
    pub events: u64,
    /// How things stood, step by step until arrivals ended, if that was asked for.
    pub trace: Vec<Sample>,
}

/// Who makes a request, by slab index.
#[derive(Clone, Copy, Debug)]
enum By {
    Visitor(u32),
    Intruder(u32),
}

/// A request in the world. The engine knows it by its index.
#[derive(Clone, Copy, Debug)]
struct Live {
    by: By,
    session: SessionKey,
    /// It names its session: whoever makes it has a cookie, or pretends to.
    claims: bool,
    of: Of,
    signals: Signals,
    demand: Span,
    made: Time,
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
    adversaries: Adversaries<'a>,
    requests: Slots<Live>,
    serial: u64,
    engine: Engine,
    actions: Vec<Action>,
    timer: Option<Time>,
    servers: Servers,
    /// When the servers are next done with a request, and the event that says so.
    service: (Option<Time>, u64),
    /// As of the last reading of the CPU.
    read: Meters,
    /// As of the last step of the trace.
    traced: Meters,
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
    world.out.hostile = world.adversaries.got();
    world.out
}

impl<'a> World<'a> {
    fn new(case: Case<'a>) -> Self {
        let Case { scenario, rho, seed, .. } = case;
        let duration = scenario.duration(rho);
        let classes = engine_classes(scenario);
        let order = case.settings.order(&classes);
        let options = Options {
            limit: case.limit.clone(),
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
                hostile: None,
                events: 0,
                trace: Vec::new(),
            },
            case,
            now: Time::ZERO,
            events: Events::default(),
            sessions: 0,
            arrivals_over: false,
            visitors: Slots::default(),
            adversaries: Adversaries::new(scenario, duration, seed),
            requests: Slots::default(),
            serial: 0,
            actions: Vec::new(),
            timer: None,
            servers: Servers::new(scenario),
            service: (None, 0),
            read: Meters::default(),
            traced: Meters::default(),
        }
    }

    fn start(&mut self) {
        self.schedule_next_session();
        for population in 0..self.case.scenario.adversaries.len() {
            self.schedule_next_burst(population);
        }
        if let Some((_, interval)) = self.engine.meter() {
            self.events.schedule(Time::ZERO + interval, Happening::CpuReading);
        }
        if let Some(Trace { every, .. }) = self.case.trace {
            self.events.schedule(Time::ZERO + every, Happening::Trace);
        }
        self.servers_change();
        self.watch_servers();
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::SessionStarts => self.session_starts(),
            Happening::Attempt { visitor } => self.attempt(visitor),
            Happening::BurstComes { population } => self.burst_comes(population as usize),
            Happening::Intrusion { intruder } => self.intrude(intruder),
            Happening::ServiceEnds { serial } => self.service_ends(serial),
            Happening::PatienceEnds { request, serial } => self.patience_ends(request, serial),
            Happening::EngineTimer => self.engine_timer(),
            Happening::CpuReading => self.cpu_reading(),
            Happening::ServersChange => self.servers_change(),
            Happening::Trace => self.trace(),
        }
        self.watch_servers();
    }

    /// Schedules the next end of a service, if it is another than was said before.
    fn watch_servers(&mut self) {
        let next = self.servers.next_end();
        if next != self.service.0 {
            self.service = (next, self.service.1 + 1);
            if let Some(at) = next {
                let ends = Happening::ServiceEnds { serial: self.service.1 };
                self.events.schedule(at, ends);
            }
        }
    }

    fn servers_change(&mut self) {
        if let Some(at) = self.servers.look(self.now) {
            self.events.schedule(at, Happening::ServersChange);
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
        let visitor = scenario.visitor(seed, self.sessions, self.now);
        let rho_now = scenario.profile.rho_at(rho, self.now);
        self.out.tally.session(&visitor, rho_now);
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
        self.out.tally.generated(attempt.class, self.now);
        let Attempt { class, order, .. } = attempt;
        let by = By::Visitor(number);
        let live = self.live(by, session, &request, Of { class, order }, attempt.demand);
        self.comes(live, attempt.patience, request);
    }

    fn schedule_next_burst(&mut self, population: usize) {
        if let Some(at) = self.adversaries.next_burst(population, self.now) {
            let population = population as u32;
            self.events.schedule(at, Happening::BurstComes { population });
        }
    }

    fn burst_comes(&mut self, population: usize) {
        for _ in 0..self.adversaries.burst(population) {
            let intruder = self.adversaries.begin(population);
            self.intrude(intruder);
        }
        self.schedule_next_burst(population);
    }

    fn intrude(&mut self, intruder: u32) {
        let Hit { request, session, demand, patience } = self.adversaries.hit(intruder);
        // She has put nothing into a cart, and the application says so.
        let of = Of { class: request.class.index(), order: false };
        let live = self.live(By::Intruder(intruder), session, &request, of, demand);
        self.comes(live, patience, request);
    }

    /// A request that is made now.
    fn live(
        &mut self,
        by: By,
        session: SessionKey,
        request: &Request,
        of: Of,
        demand: Span,
    ) -> Live {
        self.serial += 1;
        Live {
            by,
            session,
            claims: request.session.is_some(),
            of,
            signals: request.signals,
            demand: self.servers.demand(self.now, of.class, demand),
            made: self.now,
            abandoned: false,
            serial: self.serial,
        }
    }

    fn comes(&mut self, live: Live, patience: Span, request: Request) {
        let id = self.requests.put(live);
        if patience < Span::MAX {
            let end = Happening::PatienceEnds { request: id, serial: live.serial };
            self.events.schedule(self.now + patience, end);
        }
        self.tell(Event::Arrived { id: RequestId(id), request });
    }

    fn service_ends(&mut self, serial: u64) {
        if serial != self.service.1 {
            return;
        }
        self.service.0 = None;
        let Some(id) = self.servers.finish(self.now) else { return };
        let live = *self.requests.get_mut(id);
        self.work_done(&live, live.demand);
        self.requests.free(id);
        if !live.abandoned {
            self.ended(&live, Ending::Completed);
        }
        self.tell(Event::Served {
            session: live.served_session(),
            class: ClassId(live.of.class as u8),
            signals: live.signals,
            earned: self.earned(live.of),
            in_time: !live.abandoned,
        });
        self.tell(Event::Finished { id: RequestId(id), end: End::Answered });
    }

    /// What an answer brings: only orders bring anything.
    fn earned(&self, of: Of) -> Utility {
        let earns = self.case.scenario.classes[of.class].earns;
        if of.order { earns } else { Utility::new(0.0) }
    }

    fn patience_ends(&mut self, id: u32, serial: u64) {
        let Some(live) = self.requests.get(id).filter(|live| live.serial == serial) else { return };
        let live = *live;
        let stays = self.case.scenario.client.waits_for == WaitsFor::Service;
        if stays && self.servers.serves(id) {
            return;
        }
        match self.case.closes {
            Closes::Hidden => self.requests.get_mut(id).abandoned = true,
            Closes::Visible => {
                let work = self.servers.remove(self.now, id);
                self.work_done(&Live { abandoned: true, ..live }, work);
                self.requests.free(id);
                self.tell(Event::ClientGone { id: RequestId(id) });
            }
        }
        self.ended(&live, Ending::TimedOut);
    }

    /// A request ended for its client; what does she do now?
    fn ended(&mut self, live: &Live, ending: Ending) {
        match live.by {
            By::Visitor(visitor) => self.ended_for_visitor(visitor, live, ending),
            By::Intruder(intruder) => {
                if self.adversaries.ended(intruder, ending) {
                    self.events.schedule(self.now, Happening::Intrusion { intruder });
                }
            }
        }
    }

    fn ended_for_visitor(&mut self, number: u32, live: &Live, ending: Ending) {
        let response = self.now.since(live.made);
        self.out.tally.ended(live.of, self.now, response, ending);
        let guest = self.visitors.get_mut(number);
        guest.cookie |= ending == Ending::Completed;
        match guest.visitor.ended(self.case.scenario, ending) {
            Next::After(pause) => {
                self.events.schedule(self.now + pause, Happening::Attempt { visitor: number });
            }
            Next::Gone { not_generated } => {
                self.out.tally.session_over(not_generated);
                self.visitors.free(number);
            }
        }
    }

    fn work_done(&mut self, live: &Live, work: Span) {
        match live.by {
            By::Intruder(_) => self.adversaries.worked(self.now, work),
            By::Visitor(_) if live.abandoned => self.out.tally.wasted(self.now, work),
            By::Visitor(_) => self.out.tally.useful(self.now, work),
        }
    }

    /// Tells the engine and does what it says.
    fn tell(&mut self, event: Event) {
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
        let waited = now.since(live.made);
        self.servers.admit(now, id, live.demand);
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
        let meters = self.servers.meters(self.now);
        let before = std::mem::replace(&mut self.read, meters);
        let (used, before, whole) = match meter {
            Meter::Cpu => (meters.busy, before.busy, interval * u64::from(self.servers.workers())),
            Meter::Pressure => (meters.stalled, before.stalled, interval),
        };
        let used = Span::from_nanos(used.as_nanos() - before.as_nanos());
        let share = Share::new(used.as_secs_f64() / whole.as_secs_f64());
        self.tell(Event::Read(Reading { meter, share }));
        if !self.arrivals_over || self.visitors.in_use() > 0 {
            self.events.schedule(self.now + interval, Happening::CpuReading);
        }
    }

    fn trace(&mut self) {
        let Some(Trace { every: step, worths }) = self.case.trace else { return };
        let (was, meters) = (self.traced, self.servers.meters(self.now));
        self.traced = meters;
        let status = self.engine.status(self.now);
        let mean = |now: Span, was: Span| {
            Span::from_nanos(now.as_nanos() - was.as_nanos()).as_secs_f64() / step.as_secs_f64()
        };
        self.out.trace.push(Sample {
            at: self.now,
            slots: status.limit,
            waiting: status.waiting,
            work: Span::from_nanos((meters.work - was.work) as u64),
            capacity: Span::from_nanos((meters.capacity - was.capacity) as u64),
            inside: mean(meters.waited, was.waited),
            workers: mean(meters.manned, was.manned),
            worths: if worths { self.worths() } else { Vec::new() },
        });
        if !self.arrivals_over {
            self.events.schedule(self.now + step, Happening::Trace);
        }
    }
}

impl World<'_> {
    fn worths(&self) -> Vec<f64> {
        let learned = self.engine.learning().learned(self.engine.classes());
        learned.iter().map(|class| class.utility).collect()
    }
}

fn engine_classes(scenario: &Scenario) -> Vec<Class> {
    let class = |class: &bywash_scenario::file::Class| Class {
        name: class.name.clone(),
        tier: match class.tier {
            bywash_scenario::Tier::Transact => Tier::Transact,
            bywash_scenario::Tier::Browse => Tier::Browse,
        },
        utility: class.utility,
        earns: class.earns,
        pinned: class.pinned,
        queue: class.queue,
        after: class.after.iter().fold(ClassSet::NONE, |set, i| set.with(ClassId(*i as u8))),
    };
    scenario.classes.iter().map(class).collect()
}
