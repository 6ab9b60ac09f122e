//! Adversaries in virtual time: their arrivals, their requests and their results.
//!
//! The arrivals and demands of adversaries are drawn from separate random streams, so the visitors
//! of a run are the same with and without an attack. The session and address keys of adversaries
//! are disjoint from those of visitors. The simulator's keys are plain numbers, and a common key
//! would mean a stolen session.

use bywash_engine::{
    AddressKey, AttemptKey, ClassId, PopulationKey, Request, SessionKey, TargetKey, VisitorKey,
};
use bywash_scenario::{Adversary, Claims, Distribution, Ending, Hostile, Scenario, Stream};
use bywash_units::{Time, TimeSpan};

use crate::slots::Slots;

/// The number of the random streams for the arrivals of adversaries. Streams of visitors have lower
/// numbers.
const ARRIVALS: u64 = 0x1000;
/// The number of the random streams for the service demands of adversaries.
const DEMANDS: u64 = 0x1001;
/// The number of the random streams for the populations that adversaries are in.
const SHAPES: u64 = 0x1002;
/// The number of the random streams for the targets that adversaries ask for.
const TARGETS: u64 = 0x1003;

/// The lowest session and address key of an adversary. The attempt key of a request is such a key
/// shifted left by eight bits, plus the class, so a session or address key must fit into 56 bits.
const KEYS: u64 = 1 << 54;

/// All adversaries of one run.
#[derive(Debug)]
pub(crate) struct Adversaries<'a> {
    scenario: &'a Scenario,
    seed: u64,
    arrivals: Vec<Stream>,
    begun: u64,
    requests: u64,
    present: Slots<Intruder>,
    results: AdversaryResults,
}

/// One adversary whose requests are not finished.
#[derive(Debug)]
struct Intruder {
    population: usize,
    number: u64,
    /// The number of requests of the path that were answered so far.
    at: usize,
    demands: Stream,
}

/// A request of an adversary.
#[derive(Debug)]
pub(crate) struct AdversaryRequest {
    pub(crate) request: Request,
    /// The session that the answer to the request belongs to.
    pub(crate) session: SessionKey,
    pub(crate) demand: TimeSpan,
    pub(crate) patience: TimeSpan,
    pub(crate) slow: Option<Slow>,
}

/// The way in which a client keeps its slot longer than the service takes: it sends or reads
/// slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    /// The time for which the client keeps the slot in addition to the service time.
    pub(crate) holds: TimeSpan,
    /// The rate at which the client sends or reads, in bytes per second.
    pub(crate) rate: u64,
}

/// The results of adversaries in one run.
#[derive(Clone, Copy, Debug)]
pub struct AdversaryResults {
    /// The total work that the servers can do until arrivals end.
    capacity: TimeSpan,
    /// The end of arrivals.
    end: Time,
    work: TimeSpan,
    generated: u64,
    served: u64,
    refused: u64,
}

impl<'a> Adversaries<'a> {
    pub(crate) fn new(scenario: &'a Scenario, duration: TimeSpan, seed: u64) -> Self {
        let populations = 0..scenario.adversaries.len() as u64;
        Self {
            scenario,
            seed,
            arrivals: populations.map(|index| Stream::new(seed, ARRIVALS, index)).collect(),
            begun: 0,
            requests: 0,
            present: Slots::default(),
            results: AdversaryResults {
                capacity: scenario.servers.capacity(scenario.workers, duration),
                end: Time::ZERO + duration,
                work: TimeSpan::ZERO,
                generated: 0,
                served: 0,
                refused: 0,
            },
        }
    }

    /// Returns the time of the next burst of `population` after `now`; `None` if the attack is over
    /// before it.
    pub(crate) fn next_burst(&mut self, population: usize, now: Time) -> Option<Time> {
        let adversary = &self.scenario.adversaries[population];
        let rate = adversary.bursts(&self.scenario.classes, self.scenario.workers).get();
        // Interarrival times are memoryless, so the wait for the first burst may begin with the
        // attack.
        let since = now.max(Time::ZERO + adversary.from);
        let gap = Distribution::Exponential(TimeSpan::from_secs_f64(1.0 / rate));
        let next = since + gap.draw(&mut self.arrivals[population]);
        (next < self.results.end.min(Time::ZERO + adversary.until)).then_some(next)
    }

    /// Returns the number of adversaries of `population` that arrive at the same time.
    pub(crate) fn burst(&self, population: usize) -> u32 {
        self.scenario.adversaries[population].burst
    }

    /// Adds an adversary of `population` and returns its index.
    pub(crate) fn begin(&mut self, population: usize) -> u32 {
        self.begun += 1;
        let demands = Stream::new(self.seed, DEMANDS, self.begun);
        self.present.put(Intruder { population, number: self.begun, at: 0, demands })
    }

    /// Returns the next request of an adversary.
    pub(crate) fn next_request(&mut self, intruder: u32) -> AdversaryRequest {
        self.requests += 1;
        self.results.generated += 1;
        let Intruder { population, number, at, demands } = self.present.get_mut(intruder);
        let adversary = &self.scenario.adversaries[*population];
        let class = adversary.path[*at];
        let session = SessionKey(KEYS + session_number(adversary, *number, self.requests));
        let claims = match adversary.session {
            Claims::None => false,
            Claims::Own => *at > 0,
            Claims::Forged => true,
        };
        let address = *number % u64::from(adversary.addresses);
        let address = AddressKey(KEYS + ((*population as u64) << 32) + address);
        // The gateway recognises a retry by the claimed session, or else by the address.
        let who = if claims { session.0 } else { address.0 };
        let request = Request {
            session: claims.then_some(session),
            address: Some(address),
            population: shape(self.scenario, self.seed, *population, *number),
            visitor: Some(VisitorKey(address.0)),
            target: target(self.scenario, self.seed, *population, *number).filter(|_| *at == 0),
            attempt: Some(AttemptKey(who << 8 | class as u64)),
            ..Request::of(ClassId(class as u8))
        };
        let demand = self.scenario.classes[class].service.draw(demands);
        let patience = adversary.patience.draw(demands);
        let Adversary { holds, rate, .. } = *adversary;
        let slow = (holds > TimeSpan::ZERO).then_some(Slow { holds, rate });
        AdversaryRequest { request, session, demand, patience, slow }
    }

    /// Records the end of a request of the adversary `intruder`. Returns whether this adversary
    /// makes another request now.
    pub(crate) fn ended(&mut self, intruder: u32, ending: Ending) -> bool {
        match ending {
            Ending::Completed => self.results.served += 1,
            Ending::Dropped => self.results.refused += 1,
            Ending::TimedOut | Ending::Terminated | Ending::Failed => {}
        }
        let here = self.present.get_mut(intruder);
        here.at += 1;
        let length = self.scenario.adversaries[here.population].path.len();
        let goes_on = ending == Ending::Completed && here.at < length;
        if !goes_on {
            self.present.free(intruder);
        }
        goes_on
    }

    /// Records service time for an adversary that ended at `now`. Only time until the end of
    /// arrivals counts.
    pub(crate) fn record_work(&mut self, now: Time, work: TimeSpan) {
        if now <= self.results.end {
            self.results.work += work;
        }
    }

    /// Returns the results of all adversaries; `None` if the scenario has none.
    pub(crate) fn results(&self) -> Option<AdversaryResults> {
        (!self.arrivals.is_empty()).then_some(self.results)
    }
}

/// Returns the number of the session that a request claims. An adversary's own session is used for
/// all its requests; any other session is used once.
fn session_number(adversary: &Adversary, intruder: u64, request: u64) -> u64 {
    match adversary.session {
        Claims::Own => intruder << 1,
        Claims::None | Claims::Forged => (request << 1) + 1,
    }
}

/// Returns the population that a gateway sees an adversary in; `None` if it tells none apart.
fn shape(scenario: &Scenario, seed: u64, which: usize, number: u64) -> Option<PopulationKey> {
    let (of_visitors, mut stream) = scenario.client.shape(|| Stream::new(seed, SHAPES, number))?;
    let Adversary { shapes, mimics, mimics_evenly, .. } = scenario.adversaries[which];
    if stream.unit() < mimics {
        let even = (stream.unit() * f64::from(scenario.client.shapes)) as u64;
        return Some(PopulationKey(if mimics_evenly { even } else { u64::from(of_visitors) }));
    }
    Some(PopulationKey(KEYS + ((which as u64) << 32) + number % u64::from(shapes)))
}

/// Returns the target of an adversary's first request; `None` if the gateway tells none apart.
fn target(scenario: &Scenario, seed: u64, which: usize, number: u64) -> Option<TargetKey> {
    let stream = || Stream::new(seed, TARGETS, number);
    let of_visitors = scenario.client.target(stream)?;
    let evenly = || (stream().unit() * f64::from(scenario.client.targets)) as u64;
    let mimics = scenario.adversaries[which].mimics_targets;
    Some(target_key(if mimics { of_visitors } else { evenly() }))
}

/// Returns the key of a target: its number, in which all bits depend on all bits.
pub(crate) fn target_key(number: u64) -> TargetKey {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    TargetKey((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93))
}

impl AdversaryResults {
    /// Returns the number of adversaries' requests that were answered in time.
    pub const fn served(&self) -> u64 {
        self.served
    }

    /// Returns the number of adversaries' requests that were refused.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Sums the results of the runs of one cell; `None` without adversaries.
    pub(crate) fn sum(runs: impl Iterator<Item = Self>) -> Option<Hostile> {
        let sum = runs.reduce(|sum, run| Self {
            capacity: sum.capacity + run.capacity,
            end: run.end,
            work: sum.work + run.work,
            generated: sum.generated + run.generated,
            served: sum.served + run.served,
            refused: sum.refused + run.refused,
        })?;
        let Self { generated, served, refused, .. } = sum;
        let hostile_work = sum.work.as_secs_f64() / sum.capacity.as_secs_f64();
        Some(Hostile { hostile_work, generated, served, refused })
    }
}
