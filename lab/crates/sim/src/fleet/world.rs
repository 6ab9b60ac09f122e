//! One run of a fleet: gateways, their messages, visitors, and the application.

use bywash_engine::catalog::{LimitSettings, find};
use bywash_engine::{
    Action, Class, ClassId, ClassSet, End, Engine, Event, Offered, Options, Request, RequestId,
    SessionKey, Tier,
};
use bywash_fleet::{
    Allocator, Announcement, Demand, DemandMeter, Grant, Identity, Ignored, Member, MemberId, Rank,
    Report, Settings,
};
use bywash_scenario::Stream;
use bywash_units::{Time, TimeSpan, Utility};

use super::event::FleetEvent;
use super::traffic::Traffic;
use super::{Division, Fault, FleetCase, FleetOutput};
use crate::events::EventQueue;
use crate::slots::Slots;

/// The mean patience of visitors.
const PATIENCE: TimeSpan = TimeSpan::from_secs(2);
/// The time before requests are counted.
const WARM_UP: TimeSpan = TimeSpan::from_secs(10);
/// The numbers of the random streams for visitors and for the network.
const VISITORS: u64 = 0x3000;
const NETWORK: u64 = 0x3001;

const BROWSE: ClassId = ClassId(0);
const BUY: ClassId = ClassId(1);

#[derive(Clone, Debug)]
enum Message {
    Report(Report),
    Grant(Grant),
    Announcement(Announcement),
    Refusal(Identity),
}

#[derive(Clone, Copy, Debug)]
struct LiveRequest {
    serial: u64,
    /// The time that the application works on it.
    service: TimeSpan,
    /// The time at which the visitor leaves.
    leaves: Time,
    is_valuable: bool,
    is_counted: bool,
    is_running: bool,
}

pub(super) struct Gateway {
    engine: Engine,
    requests: Slots<LiveRequest>,
    meter: DemandMeter,
    pub(super) member: Member,
    pub(super) allocator: Allocator,
    timer: Option<Time>,
    /// The time at which the gateway's slots may change without a message.
    change: Option<Time>,
}

pub(super) struct World {
    pub(super) case: FleetCase,
    pub(super) settings: Settings,
    pub(super) now: Time,
    end: Time,
    pub(super) events: EventQueue<FleetEvent>,
    traffic: Traffic,
    network: Stream,
    /// The gateway that has the fault.
    pub(super) failing: Option<usize>,
    /// The time at which that gateway recovers.
    pub(super) recovers: Time,
    pub(super) gateways: Vec<Gateway>,
    messages: Slots<Message>,
    serial: u64,
    /// The number of requests in the application.
    running: u32,
    output: FleetOutput,
}

/// Plays a run.
///
/// # Panics
/// Panics if there is no gateway.
pub fn play(case: &FleetCase) -> FleetOutput {
    assert!(case.gateways > 0, "a fleet has at least one gateway");
    let mut world = World::new(case);
    while let Some((at, event)) = world.events.next() {
        if at > world.end + PATIENCE {
            break;
        }
        world.now = at;
        world.handle(event);
        world.watch();
    }
    world.output
}

impl World {
    fn new(case: &FleetCase) -> Self {
        let traffic = Traffic::new(case, Stream::new(case.seed, VISITORS, 0));
        let mut network = Stream::new(case.seed, NETWORK, 0);
        let count = if case.division == Division::OneQueue { 1 } else { case.gateways };
        let settings = Settings::new(count);
        let mut events = EventQueue::default();
        events.schedule(Time::ZERO, FleetEvent::Arrives);
        if let Some(every) = case.moves {
            events.schedule(Time::ZERO + every, FleetEvent::TrafficMoves);
        }
        if let Some((_, lasts)) = case.faults.filter(|_| count > 1) {
            events.schedule(Time::ZERO + lasts, FleetEvent::FaultMoves);
        }
        let share = settings.share(case.slots);
        let gateways = (0..count)
            .map(|index| {
                let begins = settings.heartbeat.scale(network.unit());
                let gateway = index as usize;
                events.schedule(Time::ZERO + begins, FleetEvent::Heartbeat { gateway });
                Gateway::new(Time::ZERO, u64::from(index), settings, share)
            })
            .collect();
        Self {
            case: *case,
            settings,
            now: Time::ZERO,
            end: Time::ZERO + WARM_UP + case.lasts,
            events,
            traffic,
            network,
            failing: None,
            recovers: Time::ZERO,
            gateways,
            messages: Slots::default(),
            serial: 0,
            running: 0,
            output: FleetOutput::default(),
        }
    }

    fn handle(&mut self, event: FleetEvent) {
        if event.gateway().is_some_and(|gateway| self.has(Fault::Stopped, gateway)) {
            self.events.schedule(self.recovers, event);
            return;
        }
        match event {
            FleetEvent::Arrives => self.arrives(),
            FleetEvent::Requested { gateway, request } => self.requested(gateway, request),
            FleetEvent::PatienceEnds { gateway, request, serial } => {
                self.patience_ends(gateway, request, serial);
            }
            FleetEvent::ServiceEnds { gateway, request, serial } => {
                self.running -= 1;
                self.handle(FleetEvent::Answered { gateway, request, serial });
            }
            FleetEvent::Answered { gateway, request, serial } => {
                self.answered(gateway, request, serial);
            }
            FleetEvent::EngineTimer { gateway } => self.engine_timer(gateway),
            FleetEvent::Heartbeat { gateway } => self.heartbeat(gateway),
            FleetEvent::LeaseEnds { gateway } => {
                if self.gateways[gateway].change == Some(self.now) {
                    self.set_slots(gateway);
                }
            }
            FleetEvent::MessageArrives { gateway, message } => {
                self.message_arrives(gateway, message);
            }
            FleetEvent::TrafficMoves => {
                self.traffic.moves();
                if let Some(every) = self.case.moves {
                    self.events.schedule(self.now + every, FleetEvent::TrafficMoves);
                }
            }
            FleetEvent::FaultMoves => self.fault_moves(),
        }
    }

    /// Notes the most slots and running requests of the fleet.
    fn watch(&mut self) {
        self.output.most_running = self.output.most_running.max(self.running);
        if self.leases() {
            let lives = |at: &(usize, &Gateway)| !self.has(Fault::Killed, at.0);
            let live = self.gateways.iter().enumerate().filter(lives);
            let slots = live.map(|(_, at)| at.member.slots(self.now)).sum();
            self.output.most_slots = self.output.most_slots.max(slots);
        }
    }

    /// Returns whether the gateways divide slots by messages.
    const fn leases(&self) -> bool {
        matches!(self.case.division, Division::ByArrivals | Division::ByRank)
    }

    fn arrives(&mut self) {
        let rate = self.case.load * f64::from(self.case.slots) / self.case.service.as_secs_f64();
        if self.now < self.end {
            let pause = TimeSpan::from_secs_f64(self.traffic.exponential() / rate);
            self.events.schedule(self.now + pause, FleetEvent::Arrives);
        }
        let (gateway, is_valuable) = self.traffic.next();
        let patience = PATIENCE.scale(self.traffic.exponential());
        let service = self.case.service.scale(self.traffic.exponential());
        self.serial += 1;
        let serial = self.serial;
        let count = self.gateways.len();
        let gateway = match gateway {
            _ if count == 1 => 0,
            away if self.is_away(away) => (away + 1 + serial as usize % (count - 1)) % count,
            gateway => gateway,
        };
        let is_counted = self.now >= Time::ZERO + WARM_UP && self.now < self.end;
        if is_counted && is_valuable {
            self.output.valuable += 1;
        }
        let leaves = self.now + patience;
        let is_running = false;
        let live = LiveRequest { serial, service, leaves, is_valuable, is_counted, is_running };
        let request = self.gateways[gateway].requests.put(live);
        self.events.schedule(leaves, FleetEvent::PatienceEnds { gateway, request, serial });
        self.handle(FleetEvent::Requested { gateway, request });
    }

    fn requested(&mut self, gateway: usize, request: u32) {
        let live = self.gateways[gateway].requests.get_mut(request);
        let facts = if live.is_valuable {
            Request {
                session: Some(SessionKey(live.serial)),
                proven: ClassSet::NONE.with(BROWSE),
                ..Request::of(BUY)
            }
        } else {
            Request::of(BROWSE)
        };
        self.tell(gateway, Event::Arrived { id: RequestId(request), request: facts });
    }

    fn patience_ends(&mut self, gateway: usize, request: u32, serial: u64) {
        let at = &mut self.gateways[gateway];
        if at.requests.get_if(request, serial).is_some_and(|live| !live.is_running) {
            at.requests.free(request);
            self.tell(gateway, Event::ClientGone { id: RequestId(request) });
        }
    }

    fn answered(&mut self, gateway: usize, request: u32, serial: u64) {
        let at = &mut self.gateways[gateway];
        let Some(live) = at.requests.get_if(request, serial).copied() else { return };
        at.requests.free(request);
        let in_time = self.now < live.leaves;
        if live.is_counted && in_time {
            if live.is_valuable {
                self.output.answered += 1;
            } else {
                self.output.others += 1;
            }
        }
        let end = End::Answered { in_time, held_up: false, done: true };
        self.tell(gateway, Event::Finished { id: RequestId(request), end });
    }

    fn engine_timer(&mut self, gateway: usize) {
        let at = &mut self.gateways[gateway];
        if at.timer.is_none_or(|timer| timer > self.now) {
            return;
        }
        at.timer = None;
        let mut actions = Vec::new();
        at.engine.on_timer(self.now, &mut actions);
        self.act(gateway, &actions);
    }

    fn tell(&mut self, gateway: usize, event: Event) {
        let mut actions = Vec::new();
        self.gateways[gateway].engine.on_event(self.now, event, &mut actions);
        self.act(gateway, &actions);
    }

    fn act(&mut self, gateway: usize, actions: &[Action]) {
        for action in actions {
            match *action {
                Action::Dispatch { id, .. } => self.dispatch(gateway, id.0),
                Action::Shed { id, .. } => self.gateways[gateway].requests.free(id.0),
                Action::Terminate { .. } | Action::Cancel { .. } => {
                    unreachable!("no class can be stopped")
                }
            }
        }
        let at = &mut self.gateways[gateway];
        let timer = at.engine.next_timer();
        if timer != at.timer {
            at.timer = timer;
            if let Some(timer) = timer {
                self.events.schedule(timer, FleetEvent::EngineTimer { gateway });
            }
        }
    }

    fn dispatch(&mut self, gateway: usize, request: u32) {
        let at = &mut self.gateways[gateway];
        let live = at.requests.get_mut(request);
        live.is_running = true;
        self.running += 1;
        let (serial, service) = (live.serial, live.service);
        let event = FleetEvent::ServiceEnds { gateway, request, serial };
        self.events.schedule(self.now + service, event);
    }

    fn heartbeat(&mut self, gateway: usize) {
        if !self.leases() {
            return;
        }
        let event = FleetEvent::Heartbeat { gateway };
        self.events.schedule(self.now + self.settings.heartbeat, event);
        if self.is_away(gateway) {
            return;
        }
        let by_rank = self.case.division == Division::ByRank;
        let now = self.now;
        let at = &mut self.gateways[gateway];
        let announces = at.member.should_announce(now);
        let from = at.member.identity();
        let demand = at.demand(now, by_rank);
        let report = at.member.report(now, at.engine.running(), demand);
        let mut grants = Vec::new();
        at.allocator.divide(now, &mut grants);
        if announces {
            for to in 0..self.gateways.len() {
                self.send(gateway, to, Message::Announcement(Announcement { from }));
            }
        }
        if let Some(report) = report {
            self.send(gateway, index_of(report.to), Message::Report(report));
        }
        for grant in grants {
            self.send(gateway, index_of(grant.to), Message::Grant(grant));
        }
        self.set_slots(gateway);
        self.prove_down(gateway);
    }

    fn send(&mut self, from: usize, to: usize, message: Message) {
        let mut delay = TimeSpan::ZERO;
        if from != to {
            self.output.messages += 1;
            let is_cut = self.has(Fault::CutOff, from) || self.has(Fault::CutOff, to);
            if is_cut || self.network.unit() < self.case.lost.get() {
                return;
            }
            delay = self.case.delay.scale(self.network.unit());
        }
        let message = self.messages.put(message);
        self.events.schedule(self.now + delay, FleetEvent::MessageArrives { gateway: to, message });
    }

    fn message_arrives(&mut self, to: usize, number: u32) {
        let Some(message) = self.messages.get(number).cloned() else { return };
        self.messages.free(number);
        if self.is_away(to) {
            return;
        }
        let at = &mut self.gateways[to];
        match message {
            // The allocator ignores other reports that it has no use for.
            Message::Report(report) => {
                if at.allocator.on_report(self.now, &report) == Err(Ignored::TwoRuns) {
                    self.send(to, index_of(report.from), Message::Refusal(report.from));
                }
            }
            Message::Grant(grant) => at.member.on_grant(&grant),
            Message::Announcement(from) => at.member.on_announcement(self.now, &from),
            Message::Refusal(refused) => {
                if refused == at.member.identity() {
                    at.member.on_refusal(self.now);
                }
            }
        }
        self.set_slots(to);
    }

    /// Gives the engine of a gateway the slots that the gateway has now, if slots are leased.
    pub(super) fn set_slots(&mut self, gateway: usize) {
        if !self.leases() {
            return;
        }
        let at = &mut self.gateways[gateway];
        let mut actions = Vec::new();
        at.engine.set_slot_lease(self.now, Some(at.member.slots(self.now)), &mut actions);
        let change = at.member.next_change(self.now);
        if change != at.change {
            at.change = change;
            if let Some(change) = change {
                self.events.schedule(change, FleetEvent::LeaseEnds { gateway });
            }
        }
        self.act(gateway, &actions);
    }
}

impl Gateway {
    /// Creates a gateway that starts now.
    pub(super) fn new(now: Time, number: u64, settings: Settings, share: u32) -> Self {
        let classes = classes();
        let policy = find("session-first").expect("it is in the catalogue");
        let scheduler = policy.settings([]).expect("the defaults are valid").scheduler(&classes);
        let options = Options { limit: LimitSettings::from(share), ..Options::default() };
        let me = Identity { member: MemberId(number), run: now.as_nanos() };
        Self {
            engine: Engine::new(classes, scheduler, options),
            requests: Slots::default(),
            meter: DemandMeter::new(now),
            member: Member::new(now, me, settings, share),
            allocator: Allocator::new(
                me,
                settings,
                share,
                (0..u64::from(settings.gateways)).map(MemberId),
            ),
            timer: None,
            change: None,
        }
    }

    /// Returns the demand since the last call. Without ranks, all of it has the best rank.
    fn demand(&mut self, now: Time, by_rank: bool) -> Demand {
        let Offered { arrivals, waiting, mean_service } = self.engine.offered();
        let demand = self.meter.sample(now, mean_service, &arrivals, &waiting);
        if by_rank {
            return demand;
        }
        let whole = demand.thousandths().iter().fold(0, |sum: u32, one| sum.saturating_add(*one));
        Demand::default().with(Rank::new(0), whole)
    }
}

impl Slots<LiveRequest> {
    /// Returns the request with this number, if it is still the one with this serial number.
    fn get_if(&mut self, request: u32, serial: u64) -> Option<&mut LiveRequest> {
        let is_same = self.get(request).is_some_and(|live| live.serial == serial);
        is_same.then(|| self.get_mut(request))
    }
}

fn index_of(identity: Identity) -> usize {
    identity.member.0 as usize
}

fn classes() -> Vec<Class> {
    let class = |name: &str, tier, requires| Class {
        name: name.into(),
        tier,
        utility: Utility::default(),
        revenue: Utility::default(),
        queue: None,
        requires,
        stop: None,
        fixed_value: None,
    };
    vec![
        class("browse", Tier::Browsing, ClassSet::NONE),
        class("buy", Tier::Transaction, ClassSet::NONE.with(BROWSE)),
    ]
}
