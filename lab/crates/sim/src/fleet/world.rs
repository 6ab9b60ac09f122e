//! One run of a fleet: gateways, their messages, visitors, and the application.

use bywash_engine::catalog::{LimitSettings, find};
use bywash_engine::{
    Action, Class, ClassId, ClassSet, End, Engine, Event, Offered, Options, Request, RequestId,
    SessionKey, Tier,
};
use bywash_fleet::{
    Allocator, Announcement, Demand, DemandMeter, Grant, Identity, Member, MemberId, Rank, Report,
    Settings,
};
use bywash_scenario::Stream;
use bywash_units::{Time, TimeSpan, Utility};

use super::traffic::Traffic;
use super::{Division, FleetCase, FleetOutput};
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

#[derive(Clone, Copy, Debug)]
enum FleetEvent {
    /// The next request arrives.
    Arrives,
    /// A visitor's patience ends. The event is void if `serial` is no longer that of the request.
    PatienceEnds { gateway: usize, request: u32, serial: u64 },
    /// The application has answered a request.
    ServiceEnds { gateway: usize, request: u32, serial: u64 },
    /// The timer of a gateway's engine fires.
    EngineTimer { gateway: usize },
    /// A gateway reports, and divides slots if it is the allocator.
    Heartbeat { gateway: usize },
    /// A lease or a pledge of a gateway ends. The event is void if the gateway expects another time.
    LeaseEnds { gateway: usize },
    /// A message between gateways arrives.
    MessageArrives { message: u32 },
    /// The arrivals at all gateways change places.
    TrafficMoves,
    /// The next gateway is cut off from all others, and the last one is not any more.
    NetworkCuts,
}

#[derive(Clone, Debug)]
enum Message {
    Report(Report),
    Grant(Grant),
    Announcement(Announcement),
}

#[derive(Clone, Copy, Debug)]
struct LiveRequest {
    serial: u64,
    /// The time that the application works on it.
    service: TimeSpan,
    is_valuable: bool,
    is_counted: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    /// The application works on the request.
    Running,
    /// The application works on the request, whose visitor has left.
    Abandoned,
}

struct Gateway {
    engine: Engine,
    requests: Slots<LiveRequest>,
    meter: DemandMeter,
    member: Member,
    allocator: Allocator,
    timer: Option<Time>,
    /// The time at which the gateway's slots may change without a message.
    change: Option<Time>,
}

struct World {
    case: FleetCase,
    settings: Settings,
    now: Time,
    end: Time,
    events: EventQueue<FleetEvent>,
    traffic: Traffic,
    network: Stream,
    /// The gateway whose messages are all lost.
    cut_off: Option<usize>,
    gateways: Vec<Gateway>,
    messages: Slots<(usize, Message)>,
    serial: u64,
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
        if let Some(every) = case.cuts {
            events.schedule(Time::ZERO + every, FleetEvent::NetworkCuts);
        }
        let share = settings.share(case.slots);
        let gateways = (0..count)
            .map(|index| {
                let begins = settings.heartbeat.scale(network.unit());
                let gateway = index as usize;
                events.schedule(Time::ZERO + begins, FleetEvent::Heartbeat { gateway });
                Gateway::new(u64::from(index), settings, share)
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
            cut_off: None,
            gateways,
            messages: Slots::default(),
            serial: 0,
            output: FleetOutput::default(),
        }
    }

    fn handle(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Arrives => self.arrives(),
            FleetEvent::PatienceEnds { gateway, request, serial } => {
                self.patience_ends(gateway, request, serial);
            }
            FleetEvent::ServiceEnds { gateway, request, serial } => {
                self.service_ends(gateway, request, serial);
            }
            FleetEvent::EngineTimer { gateway } => self.engine_timer(gateway),
            FleetEvent::Heartbeat { gateway } => self.heartbeat(gateway),
            FleetEvent::LeaseEnds { gateway } => {
                if self.gateways[gateway].change == Some(self.now) {
                    self.set_slots(gateway);
                }
            }
            FleetEvent::MessageArrives { message } => self.message_arrives(message),
            FleetEvent::TrafficMoves => {
                self.traffic.moves();
                if let Some(every) = self.case.moves {
                    self.events.schedule(self.now + every, FleetEvent::TrafficMoves);
                }
            }
            FleetEvent::NetworkCuts => {
                let next = self.cut_off.map_or(0, |before| before + 1);
                self.cut_off = Some(next % self.gateways.len());
                if let Some(every) = self.case.cuts {
                    self.events.schedule(self.now + every, FleetEvent::NetworkCuts);
                }
            }
        }
    }

    /// Notes the most slots and running requests of the fleet.
    fn watch(&mut self) {
        let running: u32 = self.gateways.iter().map(|gateway| gateway.engine.running()).sum();
        self.output.most_running = self.output.most_running.max(running);
        if self.leases() {
            let slots: u32 = self.gateways.iter().map(|at| at.member.slots(self.now)).sum();
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
        let gateway = if self.gateways.len() == 1 { 0 } else { gateway };
        let patience = PATIENCE.scale(self.traffic.exponential());
        let service = self.case.service.scale(self.traffic.exponential());
        self.serial += 1;
        let serial = self.serial;
        let is_counted = self.now >= Time::ZERO + WARM_UP && self.now < self.end;
        if is_counted && is_valuable {
            self.output.valuable += 1;
        }
        let live = LiveRequest { serial, service, is_valuable, is_counted, phase: Phase::Waiting };
        let at = &mut self.gateways[gateway];
        let request = at.requests.put(live);
        let facts = if is_valuable {
            Request {
                session: Some(SessionKey(serial)),
                proven: ClassSet::NONE.with(BROWSE),
                ..Request::of(BUY)
            }
        } else {
            Request::of(BROWSE)
        };
        self.events
            .schedule(self.now + patience, FleetEvent::PatienceEnds { gateway, request, serial });
        self.tell(gateway, Event::Arrived { id: RequestId(request), request: facts });
    }

    fn patience_ends(&mut self, gateway: usize, request: u32, serial: u64) {
        let at = &mut self.gateways[gateway];
        let Some(live) = at.requests.get_if(request, serial) else { return };
        if live.phase != Phase::Waiting {
            live.phase = Phase::Abandoned;
            return;
        }
        at.requests.free(request);
        self.tell(gateway, Event::ClientGone { id: RequestId(request) });
    }

    fn service_ends(&mut self, gateway: usize, request: u32, serial: u64) {
        let at = &mut self.gateways[gateway];
        let Some(live) = at.requests.get_if(request, serial).copied() else { return };
        at.requests.free(request);
        let in_time = live.phase == Phase::Running;
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
        live.phase = Phase::Running;
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
    }

    fn send(&mut self, from: usize, to: usize, message: Message) {
        let mut delay = TimeSpan::ZERO;
        if from != to {
            self.output.messages += 1;
            let is_cut = [from, to].map(Some).contains(&self.cut_off);
            if is_cut || self.network.unit() < self.case.lost.get() {
                return;
            }
            delay = self.case.delay.scale(self.network.unit());
        }
        let message = self.messages.put((to, message));
        self.events.schedule(self.now + delay, FleetEvent::MessageArrives { message });
    }

    fn message_arrives(&mut self, number: u32) {
        let Some((to, message)) = self.messages.get(number).cloned() else { return };
        self.messages.free(number);
        let at = &mut self.gateways[to];
        match message {
            Message::Report(report) => {
                // A report to an allocator that has no use for it changes nothing.
                at.allocator.on_report(self.now, &report).ok();
            }
            Message::Grant(grant) => at.member.on_grant(&grant),
            Message::Announcement(from) => at.member.on_announcement(self.now, &from),
        }
        self.set_slots(to);
    }

    /// Gives the engine of a gateway the slots that the gateway has now.
    fn set_slots(&mut self, gateway: usize) {
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
    fn new(number: u64, settings: Settings, share: u32) -> Self {
        let classes = classes();
        let policy = find("session-first").expect("it is in the catalogue");
        let scheduler = policy.settings([]).expect("the defaults are valid").scheduler(&classes);
        let options = Options { limit: LimitSettings::from(share), ..Options::default() };
        let me = Identity { member: MemberId(number), run: 1 };
        Self {
            engine: Engine::new(classes, scheduler, options),
            requests: Slots::default(),
            meter: DemandMeter::new(Time::ZERO),
            member: Member::new(Time::ZERO, me, settings, share),
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
