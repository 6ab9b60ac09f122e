//! One simulated run: visitors, servers, and the engine between them.
//!
//! This module has the event loop, the servers and the engine. Module `clients` makes the requests,
//! module `instruments` reads the servers' counters, and module `observe` treats requests that are
//! only observed.

mod clients;
mod instruments;
mod observe;

use bywash_engine::RuleId;
use bywash_engine::throttle::Rule;
use bywash_engine::{Action, ClassId, End, Engine, Event, Options, RequestId, Service};
use bywash_scenario::arrivals::Starts;
use bywash_scenario::{Client, Closes, Departures, Ending, Of, Stream, Tally, Throttle, WaitsFor};
use bywash_units::{Time, TimeSpan, Utility};

use crate::adversary::Adversaries;
use crate::application::Meters;
use crate::case::{Case, RunOutput, Trace, engine_classes};
use crate::events::{EventQueue, SimEvent};
use crate::peers::{self, RetryAfter};
use crate::slots::Slots;
use crate::stations::Stations;
use clients::{ActiveVisitor, LiveRequest, Presence};

/// The interval at which the simulated gateway checks whether a client is slow.
const JUDGED: TimeSpan = TimeSpan::from_millis(500);

/// The number of the random stream for the jitter in `Retry-After`.
const JITTER: u64 = 0x2000;

struct World<'a> {
    case: Case<'a>,
    now: Time,
    events: EventQueue<SimEvent>,
    starts: Starts,
    sessions: u64,
    /// The time at which arrivals end. After it, clients of sets begin no session and no request.
    end: Time,
    arrivals_over: bool,
    visitors: Slots<ActiveVisitor>,
    adversaries: Adversaries<'a>,
    requests: Slots<LiveRequest>,
    serial: u64,
    retry_after: RetryAfter,
    /// Whether the policy learns which clients are slow. bywash's own policies do, and the policies
    /// of peers do not.
    sees_slow: bool,
    jitter: Stream,
    /// The permanent clients of all sets, in the order of the sets.
    clients: Vec<Client>,
    engine: Engine,
    actions: Vec<Action>,
    timer: Option<Time>,
    servers: Stations,
    /// The time at which the servers next complete a request, and the serial number of the event
    /// for this completion. An event with an older serial number is ignored.
    service: (Option<Time>, u64),
    /// The totals of the servers' counters when the CPU use was last read.
    read: Meters,
    /// The totals of the servers' counters at the end of the last step of the trace.
    traced: Meters,
    /// The number of requests of each class that arrived since the last step of the trace.
    arrivals: Vec<u32>,
    out: RunOutput,
}

/// Runs one case from its first arrival to its last event.
pub fn play(case: Case<'_>) -> RunOutput {
    let mut world = World::new(case);
    world.start();
    while let Some((at, what)) = world.events.next() {
        world.now = at;
        world.handle(what);
    }
    world.out.events = world.events.count();
    world.out.hostile = world.adversaries.results();
    world.out
}

impl<'a> World<'a> {
    fn new(case: Case<'a>) -> Self {
        let Case { scenario, rho, seed, .. } = case;
        let duration = scenario.duration(rho);
        let classes = engine_classes(scenario);
        let scheduler = case.settings.scheduler(&classes);
        let usual = Options::default();
        let options = Options {
            limit: case.limit.clone(),
            termination: case.termination.clone(),
            max_wait: scenario.max_wait,
            sessions: scenario.sessions.unwrap_or(usual.sessions),
            ..usual
        };
        Self {
            starts: Starts::new(&scenario.profile, rho, scenario.unit_rate(), duration, seed),
            engine: Engine::new(classes, scheduler, options),
            out: RunOutput {
                tally: Tally::new(scenario, rho, duration),
                started: 0,
                delayed: 0,
                waited: TimeSpan::ZERO,
                hostile: None,
                events: 0,
                trace: Vec::new(),
            },
            case,
            now: Time::ZERO,
            events: EventQueue::default(),
            sessions: 0,
            end: Time::ZERO + duration,
            arrivals_over: false,
            visitors: Slots::default(),
            adversaries: Adversaries::new(scenario, duration, seed),
            requests: Slots::default(),
            serial: 0,
            retry_after: peers::retry_after(case.settings.name()),
            sees_slow: peers::find(case.settings.name()).is_none(),
            jitter: Stream::new(seed, JITTER, 0),
            clients: scenario.clients(seed).collect(),
            actions: Vec::new(),
            timer: None,
            servers: Stations::new(scenario),
            service: (None, 0),
            read: Meters::default(),
            traced: Meters::default(),
            arrivals: vec![0; scenario.classes.len()],
        }
    }

    fn start(&mut self) {
        self.engine.throttle(Time::ZERO, &rules(self.case.throttles), &mut self.actions);
        if self.case.scenario.sets.is_empty() {
            self.schedule_next_session();
        } else {
            self.arrivals_over = true;
            self.start_clients();
        }
        for population in 0..self.case.scenario.adversaries.len() {
            self.schedule_next_burst(population);
        }
        if let Some((_, interval)) = self.engine.meter() {
            self.events.schedule(Time::ZERO + interval, SimEvent::CpuReading);
        }
        if let Some(Trace { every, .. }) = self.case.trace {
            self.events.schedule(Time::ZERO + every, SimEvent::Trace);
        }
        self.change_servers();
        self.watch_servers();
    }

    fn handle(&mut self, what: SimEvent) {
        match what {
            SimEvent::SessionStarts => self.start_session(),
            SimEvent::ClientStarts { client, session } => self.start_client(client, session),
            SimEvent::Attempt { visitor } => self.attempt(visitor),
            SimEvent::BurstComes { population } => self.start_burst(population as usize),
            SimEvent::Intrusion { intruder } => self.send_intrusion(intruder),
            SimEvent::ServiceEnds { serial } => self.end_service(serial),
            SimEvent::AnswerArrives { request, serial } => self.deliver_answer(request, serial),
            SimEvent::PatienceEnds { request, serial } => self.patience_ends(request, serial),
            SimEvent::ClientSlow { request, serial } => self.report_slow_client(request, serial),
            SimEvent::EngineTimer => self.engine_timer(),
            SimEvent::CpuReading => self.cpu_reading(),
            SimEvent::ServersChange => self.change_servers(),
            SimEvent::Trace => self.trace(),
        }
        self.watch_servers();
    }

    /// Schedules the event for the next completion of a request, if the time of that completion has
    /// changed.
    fn watch_servers(&mut self) {
        let next = self.servers.next_end();
        if next != self.service.0 {
            self.service = (next, self.service.1 + 1);
            if let Some(at) = next {
                let ends = SimEvent::ServiceEnds { serial: self.service.1 };
                self.events.schedule(at, ends);
            }
        }
    }

    fn change_servers(&mut self) {
        if let Some(at) = self.servers.apply_changes(self.now) {
            self.events.schedule(at, SimEvent::ServersChange);
        }
    }

    fn end_service(&mut self, serial: u64) {
        if serial != self.service.1 {
            return;
        }
        self.service.0 = None;
        let Some(id) = self.servers.finish(self.now) else { return };
        let live = *self.requests.get_mut(id);
        self.record_work(&live, live.demand, !live.is_abandoned());
        if live.client == Presence::GaveUpUnnoticed {
            self.requests.free(id);
            return;
        }
        if live.client == Presence::GaveUpHeld {
            self.requests.free(id);
            self.notify_engine(Event::Finished {
                id: RequestId(id),
                end: End::Abandoned { answered: true },
            });
            return;
        }
        let delay = self.delay_of(live.of.class);
        if delay == TimeSpan::ZERO {
            self.deliver_answer(id, live.serial);
        } else {
            let arrives = SimEvent::AnswerArrives { request: id, serial: live.serial };
            self.events.schedule(self.now + delay, arrives);
        }
        self.notify_engine(Event::Served {
            session: live.served_session(),
            service: Service {
                address: live.address,
                ..Service::content(ClassId(live.of.class as u8))
            },
            signals: live.signals,
            revenue: self.revenue(live.of),
            in_time: !live.is_abandoned(),
        });
        let end = End::Answered { in_time: !live.is_abandoned(), held_up: false, done: true };
        self.release(id, &live, Event::Finished { id: RequestId(id), end });
    }

    fn deliver_answer(&mut self, id: u32, serial: u64) {
        let Some(live) = self.requests.get(id).filter(|live| live.serial == serial) else { return };
        let live = *live;
        self.requests.free(id);
        if !live.is_abandoned() {
            self.ended(&live, Ending::Completed);
        }
    }

    /// Returns the delay that the throttle of `class` adds to each answer; zero without a throttle.
    fn delay_of(&self, class: usize) -> TimeSpan {
        let of_class = self.case.throttles.iter().find(|throttle| throttle.class == class);
        of_class.map_or(TimeSpan::ZERO, |throttle| throttle.delay)
    }

    /// Returns the revenue of an answer, which is zero unless the answer is an order.
    fn revenue(&self, of: Of) -> Utility {
        let revenue = self.case.scenario.classes[of.class].revenue;
        if of.order { revenue } else { Utility::new(0.0) }
    }

    fn patience_ends(&mut self, id: u32, serial: u64) {
        let Some(live) = self.requests.get(id).filter(|live| live.serial == serial) else { return };
        let live = *live;
        let stays = self.case.scenario.client.waits_for == WaitsFor::Service;
        if stays && self.servers.is_in_service(id) {
            return;
        }
        let is_seen = match self.case.closes {
            Closes::Hidden => false,
            Closes::Visible => true,
            Closes::Waiting => !self.servers.is_in_service(id),
        };
        let departures = self.case.scenario.servers.departures;
        if is_seen && departures == Departures::Unnoticed && self.servers.is_in_service(id) {
            // The gateway frees the slot immediately if the application notices departures.
            // Otherwise it holds the slot until the application is done. An observed request has no
            // slot to hold.
            if self.case.departures == Departures::Noticed || live.observed.is_some() {
                self.requests.get_mut(id).client = Presence::GaveUpUnnoticed;
                self.release(id, &live, Event::ClientGone { id: RequestId(id) });
            } else {
                self.requests.get_mut(id).client = Presence::GaveUpHeld;
                self.notify_engine(Event::Departed { id: RequestId(id) });
            }
        } else if is_seen {
            let work = self.servers.remove(self.now, id);
            self.record_work(&live, work, false);
            self.requests.free(id);
            self.release(id, &live, Event::ClientGone { id: RequestId(id) });
        } else {
            self.requests.get_mut(id).client = Presence::GaveUp;
        }
        self.ended(&live, Ending::TimedOut);
    }

    /// Passes an event to the engine and carries out the actions that the engine returns, except
    /// those on observed requests.
    fn notify_engine(&mut self, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.on_event(self.now, event, &mut actions);
        self.carry_out(actions);
    }

    fn engine_timer(&mut self) {
        // Ignore the event of a timer that has been replaced. If it scheduled the next timer as
        // well, the number of events would multiply.
        if self.timer != Some(self.now) {
            return;
        }
        self.timer = None;
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.on_timer(self.now, &mut actions);
        self.carry_out(actions);
    }

    fn carry_out(&mut self, mut actions: Vec<Action>) {
        for action in actions.drain(..) {
            if self.note_decision(action) {
                continue;
            }
            match action {
                Action::Dispatch { id, .. } => self.dispatch(id.0),
                Action::Shed { id, retry_after, .. } => self.shed(id.0, retry_after),
                Action::Terminate { id, retry_after, .. } => self.terminate(id.0, retry_after),
                // The client has left, and `patience_ends` has already recorded the outcome.
                Action::Cancel { .. } => {}
            }
        }
        self.actions = actions;
        let next = self.engine.next_timer();
        if next.is_some() && (self.timer.is_none() || next < self.timer) {
            self.timer = next;
            self.events.schedule(next.unwrap_or(self.now), SimEvent::EngineTimer);
        }
    }

    fn dispatch(&mut self, id: u32) {
        let now = self.now;
        let live = *self.requests.get_mut(id);
        let waited = now.since(live.made);
        self.servers.admit(now, id, live.of.class, live.demand);
        if live.slow.is_some() && self.sees_slow {
            self.schedule_slow_check(id, live.serial);
        }
        self.out.started += 1;
        self.out.delayed += u64::from(waited > TimeSpan::ZERO);
        self.out.waited += waited;
    }

    /// Reports a slow client to the engine, and again after every interval [`JUDGED`], as the
    /// gateway does. Does nothing if the request has ended.
    fn report_slow_client(&mut self, id: u32, serial: u64) {
        let Some(live) = self.requests.get(id).filter(|live| live.serial == serial) else { return };
        if let Some(slow) = live.slow.filter(|_| self.servers.is_in_service(id)) {
            self.schedule_slow_check(id, serial);
            self.notify_engine(Event::ClientSlow { id: RequestId(id), rate: slow.rate });
        }
    }

    fn schedule_slow_check(&mut self, id: u32, serial: u64) {
        let slow = SimEvent::ClientSlow { request: id, serial };
        self.events.schedule(self.now + JUDGED, slow);
    }

    fn terminate(&mut self, id: u32, retry_after: TimeSpan) {
        let live = *self.requests.get_mut(id);
        let work = self.servers.remove(self.now, id);
        self.record_work(&live, work, false);
        self.requests.free(id);
        if !live.is_abandoned() {
            self.send_retry_after(&live, retry_after);
            self.ended(&live, Ending::Terminated);
        }
    }

    fn shed(&mut self, id: u32, retry_after: TimeSpan) {
        let live = *self.requests.get_mut(id);
        self.requests.free(id);
        if !live.is_abandoned() {
            self.send_retry_after(&live, retry_after);
            self.ended(&live, Ending::Dropped);
        }
    }
}

/// Returns the rules of the throttles that bound the concurrency, numbered in the order of
/// `throttles`.
fn rules(throttles: &[Throttle]) -> Vec<(RuleId, Rule)> {
    let rule = |(number, throttle): (usize, &Throttle)| {
        let Throttle { rate, queue, wait, max_concurrency, .. } = *throttle;
        let rule =
            max_concurrency.map(|max_concurrency| Rule { max_concurrency, rate, queue, wait })?;
        Some((RuleId(number as u32), rule))
    };
    throttles.iter().enumerate().filter_map(rule).collect()
}
