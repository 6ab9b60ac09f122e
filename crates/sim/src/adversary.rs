//! Adversaries in virtual time: when they come, what they claim, and what they got.
//!
//! Their arrivals and demands are drawn from streams of their own, so the visitors of a run are the
//! same with an attack and without. Keys of sessions and addresses lie where no visitor's lie: the
//! simulator's keys are plain numbers, and an adversary that met a visitor's would have stolen it.

use bywash_engine::{AddressKey, AttemptKey, ClassId, Request, SessionKey};
use bywash_scenario::{Adversary, Claims, Ending, Hostile, Law, Scenario, Stream};
use bywash_units::{Span, Time};

use crate::slots::Slots;

/// The purposes of their streams; those of visitors are small numbers.
const ARRIVALS: u64 = 0x1000;
const DEMANDS: u64 = 0x1001;

/// Where their keys begin. Eight bits above them are left for the class in an attempt's key.
const KEYS: u64 = 1 << 54;

/// Everybody who means harm in one run.
#[derive(Debug)]
pub(crate) struct Adversaries<'a> {
    scenario: &'a Scenario,
    seed: u64,
    arrivals: Vec<Stream>,
    begun: u64,
    requests: u64,
    present: Slots<Intruder>,
    got: Got,
}

/// One of them.
#[derive(Debug)]
struct Intruder {
    population: usize,
    number: u64,
    /// How many of her path she has been given.
    at: usize,
    demands: Stream,
}

/// A request of hers.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) request: Request,
    /// The session that an answer to it belongs to.
    pub(crate) session: SessionKey,
    pub(crate) demand: Span,
    pub(crate) patience: Span,
    pub(crate) slow: Option<Slow>,
}

/// How a client keeps its slot beyond the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    /// For so long.
    pub(crate) holds: Span,
    /// Bytes a second that it moves.
    pub(crate) rate: u64,
}

/// What they got in one run.
#[derive(Clone, Copy, Debug)]
pub struct Got {
    /// What the servers could do until arrivals ended, and when that was.
    capacity: Span,
    end: Time,
    work: Span,
    generated: u64,
    served: u64,
    refused: u64,
}

impl<'a> Adversaries<'a> {
    pub(crate) fn new(scenario: &'a Scenario, duration: Span, seed: u64) -> Self {
        let populations = 0..scenario.adversaries.len() as u64;
        Self {
            scenario,
            seed,
            arrivals: populations.map(|index| Stream::new(seed, ARRIVALS, index)).collect(),
            begun: 0,
            requests: 0,
            present: Slots::default(),
            got: Got {
                capacity: scenario.servers.capacity(scenario.workers, duration),
                end: Time::ZERO + duration,
                work: Span::ZERO,
                generated: 0,
                served: 0,
                refused: 0,
            },
        }
    }

    /// When the next burst of a population comes after `now`, if one does.
    pub(crate) fn next_burst(&mut self, population: usize, now: Time) -> Option<Time> {
        let adversary = &self.scenario.adversaries[population];
        let rate = adversary.bursts(&self.scenario.classes, self.scenario.workers).get();
        // Memoryless, so nothing is lost by beginning to wait when the attack begins.
        let since = now.max(Time::ZERO + adversary.from);
        let gap = Law::Exponential(Span::from_secs_f64(1.0 / rate));
        let next = since + gap.draw(&mut self.arrivals[population]);
        (next < self.got.end.min(Time::ZERO + adversary.until)).then_some(next)
    }

    /// How many of a population come at once.
    pub(crate) fn burst(&self, population: usize) -> u32 {
        self.scenario.adversaries[population].burst
    }

    /// One more of a population is there: her number.
    pub(crate) fn begin(&mut self, population: usize) -> u32 {
        self.begun += 1;
        let demands = Stream::new(self.seed, DEMANDS, self.begun);
        self.present.put(Intruder { population, number: self.begun, at: 0, demands })
    }

    /// What she asks for next.
    pub(crate) fn hit(&mut self, intruder: u32) -> Hit {
        self.requests += 1;
        self.got.generated += 1;
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
        // As the gateway knows a repetition: by the session that is named, or else the address.
        let who = if claims { session.0 } else { address.0 };
        let request = Request {
            session: claims.then_some(session),
            address: Some(address),
            attempt: Some(AttemptKey(who << 8 | class as u64)),
            ..Request::of(ClassId(class as u8))
        };
        let demand = self.scenario.classes[class].service.draw(demands);
        let patience = adversary.patience.draw(demands);
        let Adversary { holds, rate, .. } = *adversary;
        let slow = (holds > Span::ZERO).then_some(Slow { holds, rate });
        Hit { request, session, demand, patience, slow }
    }

    /// A request of hers ended so. Says whether she asks for more.
    pub(crate) fn ended(&mut self, intruder: u32, ending: Ending) -> bool {
        match ending {
            Ending::Completed => self.got.served += 1,
            Ending::Dropped => self.got.refused += 1,
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

    /// Service time went to one of them, until `now`.
    pub(crate) fn worked(&mut self, now: Time, work: Span) {
        if now <= self.got.end {
            self.got.work += work;
        }
    }

    /// What they got; `None` if there was nobody.
    pub(crate) fn got(&self) -> Option<Got> {
        (!self.arrivals.is_empty()).then_some(self.got)
    }
}

/// Her own session is hers for all her requests; any other is used once.
fn session_number(adversary: &Adversary, intruder: u64, request: u64) -> u64 {
    match adversary.session {
        Claims::Own => intruder << 1,
        Claims::None | Claims::Forged => (request << 1) + 1,
    }
}

impl Got {
    /// Requests that were answered in time.
    pub const fn served(&self) -> u64 {
        self.served
    }

    /// Requests that were refused.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Sums the runs of one cell.
    pub(crate) fn cell(runs: impl Iterator<Item = Self>) -> Option<Hostile> {
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
