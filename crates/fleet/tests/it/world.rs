//! Gateways and a network that loses, delays, repeats and reorders their messages, in virtual time.

use bywash_fleet::{
    Allocator, Announcement, Demand, Grant, Identity, Ignored, Member, MemberId, Rank, Report,
    Settings,
};
use bywash_units::Time;

/// A source of random numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn one_in(&mut self, odds: u64) -> bool {
        odds > 0 && self.below(odds) == 0
    }
}

#[derive(Clone)]
enum Message {
    Report(Report),
    Grant(Grant),
    Announcement(Announcement),
    Refusal(Identity),
}

/// A message on its way: the time of its arrival, and the index of the gateway that it goes to.
struct Travelling {
    at: u64,
    to: usize,
    message: Message,
}

/// The faults of the network and of the gateways. Odds are "one in"; 0 is never.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) lose: u64,
    pub(crate) repeat: u64,
    /// The longest delay of a message, in milliseconds.
    pub(crate) delay: u64,
    /// The odds that a gateway is replaced by a new run, in each millisecond.
    pub(crate) restart: u64,
    /// The odds that a gateway stops for up to 5 s, in each millisecond.
    pub(crate) pause: u64,
    /// The odds that a gateway ends, and that it starts again, in each millisecond.
    pub(crate) end: u64,
    /// The odds that the network is split into two halves, or is whole again, in each millisecond.
    pub(crate) split: u64,
    /// The odds that a gateway sends no more, or sends again, in each millisecond. It hears others.
    pub(crate) mute: u64,
    /// Whether the gateways' clocks begin at different times and run at different rates.
    pub(crate) clocks: bool,
}

pub(crate) struct Gateway {
    pub(crate) member: Member,
    pub(crate) allocator: Allocator,
    pub(crate) running: u32,
    pub(crate) demand: Demand,
    /// The start of the clock in nanoseconds, and its rate in thousandths.
    clock: (u64, u64),
    /// The real time, in milliseconds, until which the gateway does nothing.
    pub(crate) paused: u64,
    /// Whether the gateway's program does not run.
    pub(crate) is_down: bool,
    /// Whether the messages that the gateway sends to others are lost.
    pub(crate) is_mute: bool,
    next: u64,
    side: bool,
}

impl Gateway {
    fn now(&self, ms: u64) -> Time {
        Time::from_nanos(self.clock.0 + ms * 1_000 * self.clock.1)
    }
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) random: Random,
    pub(crate) settings: Settings,
    pub(crate) limit: u32,
    pub(crate) gateways: Vec<Gateway>,
    pub(crate) ms: u64,
    pub(crate) faults: Faults,
    split: bool,
    /// The number of milliseconds in which some gateway had more than its share.
    pub(crate) lent_ms: u64,
    travelling: Vec<Travelling>,
    runs: u64,
}

impl World {
    pub(crate) fn new(seed: u64, gateways: u32, limit: u32, faults: Faults) -> Self {
        let settings = Settings::new(gateways);
        let mut world = Self {
            seed,
            random: Random(seed),
            settings,
            limit,
            gateways: Vec::new(),
            ms: 0,
            faults,
            split: false,
            lent_ms: 0,
            travelling: Vec::new(),
            runs: 0,
        };
        for index in 0..gateways {
            // Two clocks differ by at most 60 parts in 970, which is less than one part in 16.
            let clock = if faults.clocks {
                (world.random.below(1 << 40), 970 + 60 * world.random.below(2))
            } else {
                (0, 1_000)
            };
            let gateway = world.start(index as usize, clock);
            world.gateways.push(gateway);
        }
        world
    }

    fn start(&mut self, index: usize, clock: (u64, u64)) -> Gateway {
        self.runs += 1;
        let me = Identity { member: MemberId(index as u64), run: self.runs };
        let now = Time::from_nanos(clock.0 + self.ms * 1_000 * clock.1);
        let share = self.settings.share(self.limit);
        let names = (0..u64::from(self.settings.gateways)).map(MemberId);
        Gateway {
            member: Member::new(now, me, self.settings, share),
            allocator: Allocator::new(me, self.settings, share, names),
            running: 0,
            demand: Demand::default(),
            clock,
            paused: 0,
            is_down: false,
            is_mute: false,
            next: self.ms + self.random.below(200),
            side: self.random.one_in(2),
        }
    }

    pub(crate) fn restart(&mut self, index: usize) {
        let clock = self.gateways[index].clock;
        self.gateways[index] = self.start(index, clock);
    }

    pub(crate) fn slots(&self, index: usize) -> u32 {
        let gateway = &self.gateways[index];
        if gateway.is_down {
            return 0;
        }
        gateway.member.slots(gateway.now(self.ms))
    }

    pub(crate) fn all_slots(&self) -> u32 {
        (0..self.gateways.len()).map(|index| self.slots(index)).sum()
    }

    /// Plays `ms` milliseconds, and checks after each that the gateways do not have more slots than
    /// the limit.
    pub(crate) fn play(&mut self, ms: u64) {
        for _ in 0..ms {
            self.ms += 1;
            self.misfortunes();
            self.deliver();
            for index in 0..self.gateways.len() {
                self.work(index);
            }
            let share = self.settings.share(self.limit);
            let lends = (0..self.gateways.len()).any(|index| self.slots(index) > share);
            self.lent_ms += u64::from(lends);
            let (all, limit) = (self.all_slots(), self.limit);
            assert!(all <= limit, "seed {}: {all} slots of {limit} at {} ms", self.seed, self.ms);
        }
    }

    fn misfortunes(&mut self) {
        let count = self.gateways.len() as u64;
        if self.random.one_in(self.faults.restart) {
            let index = self.random.below(count) as usize;
            self.restart(index);
        }
        if self.random.one_in(self.faults.end) {
            let index = self.random.below(count) as usize;
            if self.gateways[index].is_down {
                self.restart(index);
            } else {
                self.gateways[index].is_down = true;
            }
        }
        if self.random.one_in(self.faults.pause) {
            let index = self.random.below(count) as usize;
            self.gateways[index].paused = self.ms + self.random.below(5_000);
        }
        if self.random.one_in(self.faults.mute) {
            let index = self.random.below(count) as usize;
            self.gateways[index].is_mute = !self.gateways[index].is_mute;
        }
        if self.random.one_in(self.faults.split) {
            self.split = !self.split;
        }
    }

    fn deliver(&mut self) {
        let mut index = 0;
        while index < self.travelling.len() {
            let Travelling { at, to, .. } = self.travelling[index];
            if at > self.ms || self.gateways[to].paused > self.ms {
                index += 1;
                continue;
            }
            let message = self.travelling.swap_remove(index).message;
            if self.gateways[to].is_down {
                continue;
            }
            let gateway = &mut self.gateways[to];
            let now = gateway.now(self.ms);
            match message {
                Message::Report(report) => {
                    if gateway.allocator.on_report(now, &report) == Err(Ignored::TwoRuns) {
                        let refused = report.from;
                        let back = refused.member.0 as usize;
                        self.send(to, back, &Message::Refusal(refused));
                    }
                }
                Message::Grant(grant) => gateway.member.on_grant(&grant),
                Message::Announcement(from) => gateway.member.on_announcement(now, &from),
                Message::Refusal(to) if to == gateway.member.identity() => {
                    gateway.member.on_refusal(now);
                }
                Message::Refusal(_) => {}
            }
        }
    }

    fn work(&mut self, index: usize) {
        let gateway = &mut self.gateways[index];
        if gateway.paused > self.ms || gateway.is_down {
            return;
        }
        let now = gateway.now(self.ms);
        let slots = gateway.member.slots(now);
        // Requests start while there are slots, and end after 50 ms on average.
        let ended = (0..gateway.running).filter(|_| self.random.one_in(50)).count() as u32;
        gateway.running = (gateway.running - ended).max(slots);
        if self.ms < gateway.next {
            return;
        }
        gateway.next = self.ms + self.settings.heartbeat.as_millis();
        self.prove_down(index);
        let gateway = &mut self.gateways[index];
        let announces = gateway.member.should_announce(now);
        let from = gateway.member.identity();
        let report = gateway.member.report(now, gateway.running, gateway.demand.clone());
        let mut grants = Vec::new();
        gateway.allocator.divide(now, &mut grants);
        if announces {
            for to in 0..self.gateways.len() {
                self.send(index, to, &Message::Announcement(Announcement { from }));
            }
        }
        if let Some(report) = report {
            self.send(index, report.to.member.0 as usize, &Message::Report(report));
        }
        for grant in grants {
            self.send(index, grant.to.member.0 as usize, &Message::Grant(grant));
        }
    }

    /// Proves to an allocator which gateways are down, if the network is whole between them.
    fn prove_down(&mut self, index: usize) {
        let side = self.gateways[index].side;
        let is_proof = |at: &&Gateway| at.is_down && !(self.split && at.side != side);
        let down = self.gateways.iter().filter(is_proof);
        let down: Vec<MemberId> = down.map(|at| at.member.identity().member).collect();
        let gateway = &mut self.gateways[index];
        for member in down {
            let now = gateway.now(self.ms);
            gateway.allocator.on_down(now, now, member);
        }
    }

    fn send(&mut self, from: usize, to: usize, message: &Message) {
        let apart = self.gateways[from].is_mute
            || self.split && self.gateways[from].side != self.gateways[to].side;
        if from != to && (apart || self.random.one_in(self.faults.lose)) {
            return;
        }
        let copies = if self.random.one_in(self.faults.repeat) { 2 } else { 1 };
        for _ in 0..copies {
            let delay = if from == to { 0 } else { self.random.below(self.faults.delay + 1) };
            self.travelling.push(Travelling { at: self.ms + delay, to, message: message.clone() });
        }
    }

    /// Gives each gateway a new demand of up to 100 slots in three ranks.
    pub(crate) fn new_demands(&mut self) {
        for index in 0..self.gateways.len() {
            let mut demand = Demand::default();
            for rank in 0..3 {
                demand = demand.with(Rank::new(rank), self.random.below(100_000) as u32);
            }
            self.gateways[index].demand = demand;
        }
    }

    /// Ends all faults: each gateway runs, and each message arrives.
    pub(crate) fn recover(&mut self) {
        self.faults = Faults { delay: self.faults.delay.min(50), ..Faults::default() };
        self.split = false;
        for index in 0..self.gateways.len() {
            self.gateways[index].is_mute = false;
            self.gateways[index].paused = 0;
            if self.gateways[index].is_down {
                self.restart(index);
            }
        }
    }

    /// Gives one gateway this demand, in slots of the best rank.
    pub(crate) fn demand(&mut self, index: usize, slots: u32) {
        self.gateways[index].demand = Demand::default().with(Rank::new(0), 1_000 * slots);
    }

    /// Returns the index of the gateway that divides the slots.
    pub(crate) fn allocator(&self) -> usize {
        let at = self.gateways.iter().position(|at| at.member.follows(at.now(self.ms)).is_some());
        let at = &self.gateways[at.unwrap()];
        at.member.follows(at.now(self.ms)).unwrap().member.0 as usize
    }

    /// Returns the time on the clock of a gateway.
    pub(crate) fn now(&self, index: usize) -> Time {
        self.gateways[index].now(self.ms)
    }
}
