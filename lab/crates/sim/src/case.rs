//! The input and the output of a run.

use bywash_engine::Bounds;
use bywash_engine::catalog::{LimitSettings, Settings, TerminationSettings};
use bywash_engine::{Class, ClassId, ClassSet, Tier};
use bywash_scenario::{Closes, Departures, PrincipalKind, Scenario, Tally, Throttle};
use bywash_units::{Time, TimeSpan};

use crate::adversary::AdversaryResults;

/// The input of a run.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The load.
    pub scenario: &'a Scenario,
    /// The queueing policy.
    pub settings: &'a Settings,
    /// The concurrency limit.
    pub limit: &'a LimitSettings,
    /// The policy that limits the running time of cancellable requests.
    pub termination: &'a TerminationSettings,
    /// Classes that are throttled.
    pub throttles: &'a [Throttle],
    /// The principal that is charged for a request without a proven session.
    pub principal: PrincipalKind,
    /// Whether the gateway assumes that the application notices departures.
    pub departures: Departures,
    /// The level of load.
    pub rho: f64,
    /// Whether departures are seen.
    pub closes: Closes,
    /// The seed of the visitors.
    pub seed: u64,
    /// The settings of the trace, if one is recorded.
    pub trace: Option<Trace>,
}

/// The settings of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// The length of a step.
    pub every: TimeSpan,
    /// Whether to record the learned worth of requests.
    pub worths: bool,
    /// Whether to record the number of requests.
    pub arrivals: bool,
}

/// The state of a run over one step of a trace.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The end of the step.
    pub at: Time,
    /// Slots at the end.
    pub slots: u32,
    /// Requests waiting for a slot at the end.
    pub waiting: u32,
    /// Work done in the step.
    pub work: TimeSpan,
    /// Work that all workers could have done.
    pub capacity: TimeSpan,
    /// The mean number of requests inside the application beyond one per worker.
    pub inside: f64,
    /// The mean number of workers.
    pub workers: f64,
    /// The worth that the engine had learned, by class, for a session that reached the class; empty
    /// unless recorded.
    pub worths: Vec<f64>,
    /// The requests that arrived in the step, by class; empty unless recorded.
    pub arrivals: Vec<u32>,
}

/// The output of a run.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// Counts, work and revenue.
    pub tally: Tally,
    /// Requests that got a server.
    pub started: u64,
    /// The part of them that had to wait for it.
    pub delayed: u64,
    /// The total wait of these requests.
    pub waited: TimeSpan,
    /// The results of adversaries, if there were any. The fields `started`, `delayed` and `waited`
    /// above include them, the others do not.
    pub hostile: Option<AdversaryResults>,
    /// Events of the run.
    pub events: u64,
    /// The trace until arrivals ended, if one was recorded.
    pub trace: Vec<Sample>,
}

/// Returns the classes of a scenario as the engine defines them.
pub(crate) fn engine_classes(scenario: &Scenario) -> Vec<Class> {
    let class = |class: &bywash_scenario::Class| Class {
        name: class.name.clone(),
        tier: match class.tier {
            bywash_scenario::Tier::Transaction => Tier::Transaction,
            bywash_scenario::Tier::Browsing => Tier::Browsing,
        },
        utility: class.utility,
        revenue: class.revenue,
        stop: class.stop.map(|(min, max)| Bounds { min, max }),
        fixed_value: class.fixed_value,
        queue: class.queue,
        requires: class.requires.iter().fold(ClassSet::NONE, |set, i| set.with(ClassId(*i as u8))),
    };
    scenario.classes.iter().map(class).collect()
}
