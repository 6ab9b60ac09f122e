//! Simulates the load balancer in virtual time. Arrivals are Poisson and service times exponential.
//! Requests wait in a queue for slots, and then at one of three servers, each with its own workers
//! and line.
//!
//! The seeds are fixed, and so are the results. The tests check three kinds of figures. A closed
//! form that does not depend on the balancer shows that the simulation is right. Bounds hold for
//! any balancer. Measured figures have a tolerance for a change of the seed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bywash_units::{Time, TimeSpan};

use super::{Failure, Load, Options, ServerState, Servers};

const OPTIONS: Options = Options {
    rise: 2,
    fall: 3,
    eject_after: 5,
    eject_for: TimeSpan::from_secs(10),
    eject_share: 0.5,
    slow_start: TimeSpan::from_secs(10),
};

/// The way in which a server handles requests.
#[derive(Clone, Copy)]
enum Nature {
    /// Processes `workers` requests at once, each for an exponential time with this mean. Others
    /// wait in line.
    Works { workers: usize, mean: TimeSpan },
    /// Refuses each connection after this time.
    Refuses { after: TimeSpan },
    /// Accepts every request and responds to none. The request fails after this timeout.
    Hangs { timeout: TimeSpan },
    /// Works on all its requests at once, but answers the fraction `share` of them with an error
    /// after the time `after`.
    Errs { share: f64, after: TimeSpan, mean: TimeSpan },
}

#[derive(Clone, Copy)]
enum Policy {
    LeastLoaded,
    RoundRobin,
}

#[derive(Clone, Copy)]
struct Case {
    natures: [Nature; 3],
    /// The mean number of arrivals per second.
    rate: f64,
    limit: usize,
    duration: TimeSpan,
    /// The beginning and the end, in seconds, of a time in which all servers refuse.
    outage: (u64, u64),
    seed: u64,
    eject_share: f64,
    /// Whether the balancer learns of errors. Otherwise a request that ends with an error has no
    /// result.
    tells_errors: bool,
}

#[derive(Default)]
struct SimulationResult {
    served: [u64; 3],
    /// The sum of the times from arrival to a worker, over all served requests.
    waited: TimeSpan,
    connect_failures: u64,
    response_failures: u64,
    errors: [u64; 3],
    ejections: u64,
    /// The number of requests for which no server was chosen.
    refused: u64,
    /// The time at which each server first served a request that arrived after the outage.
    back: [Option<Time>; 3],
}

impl SimulationResult {
    fn mean_wait(&self) -> f64 {
        self.waited.as_secs_f64() / self.served.iter().sum::<u64>() as f64
    }
}

struct Call {
    arrived: Time,
    site: usize,
    nature: Nature,
    /// Whether the request is answered with an error.
    errs: bool,
    tried: u64,
    /// The [`Load`] by which the balancer counts the request; `None` with round robin.
    load: Option<Load>,
}

enum Event {
    Arrival,
    End(Call),
}

struct World {
    case: Case,
    now: Time,
    dice: Dice,
    events: BTreeMap<(Time, u64), Event>,
    scheduled: u64,
    servers: Arc<Servers>,
    policy: Policy,
    turns: usize,
    queue: VecDeque<Call>,
    running: usize,
    busy: [usize; 3],
    lines: [VecDeque<Call>; 3],
    out: SimulationResult,
}

fn play(case: Case, policy: Policy) -> SimulationResult {
    let options = Options { eject_share: case.eject_share, ..OPTIONS };
    let mut world = World {
        case,
        now: Time::ZERO,
        dice: Dice(case.seed),
        events: BTreeMap::from([((Time::ZERO, 0), Event::Arrival)]),
        scheduled: 0,
        servers: Arc::new(Servers::new(3, options, Time::ZERO)),
        policy,
        turns: 0,
        queue: VecDeque::new(),
        running: 0,
        busy: [0; 3],
        lines: Default::default(),
        out: SimulationResult::default(),
    };
    while let Some(((now, _), event)) = world.events.pop_first() {
        world.now = now;
        match event {
            Event::Arrival => world.arrive(),
            Event::End(call) => world.end(call),
        }
    }
    assert!(world.servers.snapshot(world.now).iter().all(|status| status.running == 0));
    world.out
}

impl World {
    fn schedule(&mut self, after: TimeSpan, event: Event) {
        self.scheduled += 1;
        self.events.insert((self.now + after, self.scheduled), event);
    }

    fn arrive(&mut self) {
        let nature = self.case.natures[0];
        self.queue.push_back(Call {
            arrived: self.now,
            site: 0,
            nature,
            errs: false,
            tried: 0,
            load: None,
        });
        self.fill_slots();
        let gap = self.dice.exponential(TimeSpan::from_secs_f64(1.0 / self.case.rate));
        if self.now + gap < Time::ZERO + self.case.duration {
            self.schedule(gap, Event::Arrival);
        }
    }

    fn fill_slots(&mut self) {
        while self.running < self.case.limit {
            let Some(call) = self.queue.pop_front() else { return };
            self.running += 1;
            self.send(call);
        }
    }

    fn send(&mut self, mut call: Call) {
        match self.policy {
            Policy::LeastLoaded => {
                let Some(load) = self.servers.choose(self.now, call.tried) else {
                    self.out.refused += 1;
                    return self.release();
                };
                call.site = load.server();
                call.load = Some(load);
            }
            Policy::RoundRobin => {
                call.site = self.turns % 3;
                self.turns += 1;
            }
        }
        call.nature = self.nature(call.site);
        call.errs = match call.nature {
            Nature::Errs { share, .. } => self.dice.throw() <= share,
            _ => false,
        };
        match call.nature {
            Nature::Errs { after, .. } if call.errs => self.schedule(after, Event::End(call)),
            Nature::Errs { mean, .. } => {
                self.out.waited += self.now.since(call.arrived);
                let service = self.dice.exponential(mean);
                self.schedule(service, Event::End(call));
            }
            Nature::Works { workers, .. } if self.busy[call.site] < workers => self.start(call),
            Nature::Works { .. } => self.lines[call.site].push_back(call),
            Nature::Refuses { after } => self.schedule(after, Event::End(call)),
            Nature::Hangs { timeout } => self.schedule(timeout, Event::End(call)),
        }
    }

    fn nature(&self, site: usize) -> Nature {
        let (from, to) = self.case.outage;
        let second = self.now.as_secs_f64() as u64;
        let out = (from..to).contains(&second);
        if out { Nature::Refuses { after: REFUSAL } } else { self.case.natures[site] }
    }

    fn start(&mut self, call: Call) {
        let Nature::Works { mean, .. } = call.nature else { return };
        self.busy[call.site] += 1;
        self.out.waited += self.now.since(call.arrived);
        let service = self.dice.exponential(mean);
        self.schedule(service, Event::End(call));
    }

    fn end(&mut self, mut call: Call) {
        match call.nature {
            Nature::Works { .. } => {
                self.out.served[call.site] += 1;
                if call.arrived >= Time::ZERO + TimeSpan::from_secs(self.case.outage.1) {
                    self.out.back[call.site].get_or_insert(self.now);
                }
                self.busy[call.site] -= 1;
                call.load.take().into_iter().for_each(|load| load.succeeded(self.now));
                if let Some(next) = self.lines[call.site].pop_front() {
                    self.start(next);
                }
            }
            Nature::Errs { .. } if call.errs => {
                self.out.errors[call.site] += 1;
                let ejected = self.ejected(call.site);
                let load = call.load.take().filter(|_| self.case.tells_errors);
                if let Some(load) = load {
                    load.errs(self.now);
                }
                self.out.ejections += u64::from(!ejected && self.ejected(call.site));
            }
            Nature::Errs { .. } => {
                self.out.served[call.site] += 1;
                call.load.take().into_iter().for_each(|load| load.succeeded(self.now));
            }
            Nature::Refuses { .. } => {
                self.out.connect_failures += 1;
                call.tried |= 1 << call.site;
                self.fail(&mut call, Failure::Connect);
                return self.send(call);
            }
            Nature::Hangs { .. } => {
                self.out.response_failures += 1;
                self.fail(&mut call, Failure::Response);
            }
        }
        self.release();
    }

    fn release(&mut self) {
        self.running -= 1;
        self.fill_slots();
    }

    fn fail(&mut self, call: &mut Call, failure: Failure) {
        let ejected = self.ejected(call.site);
        call.load.take().into_iter().for_each(|load| load.failed(self.now, failure));
        self.out.ejections += u64::from(!ejected && self.ejected(call.site));
    }

    fn ejected(&self, site: usize) -> bool {
        matches!(self.servers.snapshot(self.now)[site].state, ServerState::Ejected { .. })
    }
}

/// The random number generator `SplitMix64` (Steele, Lea, Flood 2014).
struct Dice(u64);

impl Dice {
    /// Returns a uniformly random number above 0 and at most 1.
    fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON
    }

    fn exponential(&mut self, mean: TimeSpan) -> TimeSpan {
        mean.scale(-self.throw().min(1.0).ln())
    }
}

const MEAN: TimeSpan = TimeSpan::from_millis(20);

/// The time in which a reachable machine refuses a connection.
const REFUSAL: TimeSpan = TimeSpan::from_millis(1);

const ONE_WORKER: Nature = Nature::Works { workers: 1, mean: MEAN };

/// Three equal servers with one worker each, at 70 % of their capacity, and enough slots for all
/// requests.
const EQUAL: Case = Case {
    natures: [ONE_WORKER; 3],
    rate: 105.0,
    limit: usize::MAX,
    duration: TimeSpan::from_secs(4_000),
    outage: (0, 0),
    seed: 1,
    eject_share: OPTIONS.eject_share,
    tells_errors: true,
};

const fn four_workers(milliseconds: u64) -> Nature {
    Nature::Works { workers: 4, mean: TimeSpan::from_millis(milliseconds) }
}

/// Three servers with 200, 100 and 50 requests/s of capacity.
const UNEQUAL: Case = Case {
    natures: [four_workers(20), four_workers(40), four_workers(80)],
    rate: 130.0,
    limit: 24,
    duration: TimeSpan::from_secs(1_000),
    outage: (0, 0),
    seed: 2,
    eject_share: OPTIONS.eject_share,
    tells_errors: true,
};

/// Returns the case of two of the unequal servers and a third that is dead from the start.
const fn with_a_dead_one(nature: Nature) -> Case {
    let [first, second, _] = UNEQUAL.natures;
    Case { natures: [first, second, nature], rate: 200.0, ..UNEQUAL }
}

/// Checks that `value` differs from the measured one by at most a tenth.
fn near(value: f64, measured: f64) {
    assert!((value / measured - 1.0).abs() < 0.1, "{value}, and was {measured}");
}

/// Round robin turns Poisson arrivals into an Erlang-3 stream at each of three servers. In E3/M/1
/// the mean wait is σ/(μ(1−σ)), where σ is the root of σ = (3λ/(3λ + μ(1−σ)))³ (Kleinrock, Queueing
/// Systems I, chapter 6).
#[test]
fn round_robin_waits_as_long_as_theory_has_it() {
    let (rate, service) = (EQUAL.rate / 3.0, 1.0 / MEAN.as_secs_f64());
    let step = |sigma: f64| (3.0 * rate / (3.0 * rate + service * (1.0 - sigma))).powi(3);
    let sigma = (0..1_000).fold(0.5, |sigma, _| step(sigma));
    let wait = play(EQUAL, Policy::RoundRobin).mean_wait();
    let exact = sigma / (service * (1.0 - sigma));
    assert!((wait / exact - 1.0).abs() < 0.03, "{wait} s, and by theory {exact} s");
}

/// No balancer has a shorter mean wait than one line for all three servers: M/M/3, by Erlang's C
/// formula, here at 2.1 erlangs.
#[test]
fn among_equal_servers_the_least_loaded_halves_the_wait_of_round_robin() {
    let erlangs = EQUAL.rate * MEAN.as_secs_f64();
    let all_busy = erlangs.powi(3) / 6.0 / (1.0 - erlangs / 3.0);
    let delayed = all_busy / (1.0 + erlangs + erlangs * erlangs / 2.0 + all_busy);
    let least = delayed / (3.0 / MEAN.as_secs_f64() - EQUAL.rate);
    let wait = play(EQUAL, Policy::LeastLoaded).mean_wait();
    assert!(least < wait, "{wait} s is less than the least, {least} s");
    near(wait, 0.0142);
    near(play(EQUAL, Policy::RoundRobin).mean_wait() / wait, 1.94);
}

#[test]
fn among_unequal_servers_hardly_a_request_waits_for_the_slow_one() {
    let least_loaded = play(UNEQUAL, Policy::LeastLoaded);
    let round_robin = play(UNEQUAL, Policy::RoundRobin);
    near(round_robin.mean_wait(), 0.0265);
    assert!(least_loaded.mean_wait() < round_robin.mean_wait() / 100.0);
    let [fast, _, slow] = least_loaded.served;
    near(fast as f64 / slow as f64, 2.42);
}

/// Round robin sends a third of 245 requests/s to the slow server, which can serve 50. Its requests
/// then fill all the slots.
#[test]
fn least_loaded_keeps_up_where_round_robin_does_not() {
    let case = Case { rate: 245.0, ..UNEQUAL };
    near(play(case, Policy::LeastLoaded).mean_wait(), 0.0033);
    assert!(play(case, Policy::RoundRobin).mean_wait() > 100.0);
}

/// The ejections of the dead server begin at 0, 10, 30, 60, 100, … and then every 80 s: 16 in 1,000
/// s.
#[test]
fn a_dead_server_costs_five_connections_once_and_one_for_each_return() {
    let case = with_a_dead_one(Nature::Refuses { after: REFUSAL });
    let out = play(case, Policy::LeastLoaded);
    assert_eq!(out.ejections, 16);
    assert!(out.connect_failures <= u64::from(OPTIONS.eject_after) * out.ejections);
    // Up to two further requests were on their way to the server when the fifth failed.
    assert!((20..=22).contains(&out.connect_failures), "{} connections", out.connect_failures);
    let [_, _, dead] = out.served;
    assert_eq!((dead, out.response_failures), (0, 0), "everybody was served elsewhere");
    near(out.mean_wait(), 0.0029);
}

/// Once a hanging server has as many requests as the others, it is as loaded as they are.
#[test]
fn a_hanging_server_costs_its_part_of_the_slots_once_and_one_request_for_each_return() {
    let case = with_a_dead_one(Nature::Hangs { timeout: TimeSpan::from_secs(1) });
    let out = play(case, Policy::LeastLoaded);
    assert_eq!(out.ejections, 16);
    let once = out.response_failures - (out.ejections - 1);
    assert!(once <= case.limit as u64 / 2, "{once} requests were lost before it was out");
    near(out.mean_wait(), 0.0029);
}

/// If the ejections during the outage had to expire first, two of three servers would be missing
/// for up to 30 s.
#[test]
fn after_an_outage_of_all_every_server_serves_within_a_second() {
    let case =
        Case { outage: (100, 160), duration: TimeSpan::from_secs(200), rate: 245.0, ..UNEQUAL };
    let out = play(case, Policy::LeastLoaded);
    assert!(out.refused > 0, "nobody noticed the outage");
    let end = Time::ZERO + TimeSpan::from_secs(160);
    let latest = out.back.map(|back| back.expect("it serves").since(end)).into_iter().max();
    assert!(latest < Some(TimeSpan::from_secs(1)), "the last was back after {latest:?}");
}

mod errors;
