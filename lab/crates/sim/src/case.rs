//! The input and the output of one simulated run.

use bywash_engine::Bounds;
use bywash_engine::catalog::{LimitSettings, Settings, TerminationSettings};
use bywash_engine::{Class, ClassId, ClassSet, Tier};
use bywash_scenario::{Closes, Departures, Mode, PrincipalKind, Scenario, Tally, Throttle};
use bywash_units::{Time, TimeSpan};

use crate::adversary::AdversaryResults;

/// The input of a simulated run.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The scenario, which describes visitors and servers.
    pub scenario: &'a Scenario,
    /// The queueing policy and its parameters.
    pub settings: &'a Settings,
    /// The concurrency policy and its parameters.
    pub limit: &'a LimitSettings,
    /// The policy that limits the running time of cancellable requests.
    pub termination: &'a TerminationSettings,
    /// The classes that are throttled, with the limits of each.
    pub throttles: &'a [Throttle],
    /// The principal that is charged for a request without a proven session.
    pub principal: PrincipalKind,
    /// Whether the gateway assumes that the application notices that a client has left.
    pub departures: Departures,
    /// Whether the decisions of the policy are carried out.
    pub mode: Mode,
    /// The offered load ρ of the run.
    pub rho: f64,
    /// Whether the server side can see clients leave.
    pub closes: Closes,
    /// The seed from which the visitors are drawn.
    pub seed: u64,
    /// The settings of the trace; `None` if none is recorded.
    pub trace: Option<Trace>,
}

/// The settings of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// The length of a step of the trace.
    pub every: TimeSpan,
    /// Whether to record the worth of each class that the engine has learned.
    pub worths: bool,
    /// Whether to record the number of requests of each class.
    pub arrivals: bool,
}

/// One step of a trace: the state of the run at the end of the step, and totals and means over the
/// step.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The time of the end of the step.
    pub at: Time,
    /// The number of slots at the end of the step.
    pub slots: u32,
    /// The number of requests that wait for a slot at the end of the step.
    pub waiting: u32,
    /// The total work done by all workers in the step.
    pub work: TimeSpan,
    /// The total work that all workers could have done in the step.
    pub capacity: TimeSpan,
    /// The mean number of requests inside the application in excess of one per worker, over the
    /// step.
    pub inside: f64,
    /// The mean number of workers in the step.
    pub workers: f64,
    /// The worth that the engine had learned for a session that reached each class; empty unless
    /// recorded.
    pub worths: Vec<f64>,
    /// The number of requests of each class that arrived in the step; empty unless recorded.
    pub arrivals: Vec<u32>,
}

/// The output of a run.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// The counts, work and revenue of visitors.
    pub tally: Tally,
    /// The number of requests that got a slot, or were only observed and so needed none.
    pub started: u64,
    /// The number of requests that waited before they got a slot.
    pub delayed: u64,
    /// The total wait for a slot of all requests that got one.
    pub waited: TimeSpan,
    /// The results of adversaries; `None` without adversaries. Their requests also count in
    /// [`Self::started`], [`Self::delayed`] and [`Self::waited`], but not in [`Self::tally`].
    pub hostile: Option<AdversaryResults>,
    /// The number of simulated events.
    pub events: u64,
    /// The trace until arrivals ended; empty if none was recorded.
    pub trace: Vec<Sample>,
}

/// Returns the classes of a scenario in the form that the engine needs.
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
