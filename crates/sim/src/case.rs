//! What is played, and what it yields.

use bywash_engine::catalog::{LimitSettings, Settings, TerminationSettings};
use bywash_engine::terminate::Bounds;
use bywash_engine::{Class, ClassId, ClassSet, Tier};
use bywash_scenario::{Charge, Closes, Departures, Scenario, Tally, Throttle};
use bywash_units::{Span, Time};

use crate::adversary::Got;

/// What is to be played.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The load.
    pub scenario: &'a Scenario,
    /// The policy.
    pub settings: &'a Settings,
    /// What decides how many run at once.
    pub limit: &'a LimitSettings,
    /// What decides how long a request may run that can be stopped.
    pub termination: &'a TerminationSettings,
    /// Classes that are held back.
    pub throttles: &'a [Throttle],
    /// Who answers for a request without a proven session.
    pub charge: Charge,
    /// Whether the gateway assumes that the application notices departures.
    pub departures: Departures,
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
    /// With how many requests came.
    pub asked: bool,
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
    /// By class: requests that came in the step, if that was asked for.
    pub asked: Vec<u32>,
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

/// The classes of a scenario, in the engine's words.
pub(crate) fn engine_classes(scenario: &Scenario) -> Vec<Class> {
    let class = |class: &bywash_scenario::file::Class| Class {
        name: class.name.clone(),
        tier: match class.tier {
            bywash_scenario::Tier::Transact => Tier::Transact,
            bywash_scenario::Tier::Browse => Tier::Browse,
        },
        utility: class.utility,
        earns: class.earns,
        stop: class.stop.map(|(min, max)| Bounds { min, max }),
        pinned: class.pinned,
        queue: class.queue,
        after: class.after.iter().fold(ClassSet::NONE, |set, i| set.with(ClassId(*i as u8))),
    };
    scenario.classes.iter().map(class).collect()
}
