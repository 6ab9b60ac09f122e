//! All cells of a scenario, on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bywash_engine::catalog::{self, ParameterError, Policy, Settings};
use bywash_scenario::{Closes, PolicyChoice, RunResult, Scenario, Tally};

use crate::peers;
use crate::world::{Case, Outturn, play};

/// Why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Neither the catalogue nor the peers have a policy of that name.
    #[error("there is no policy `{name}`; there are {known}, and the peers {peers}")]
    UnknownPolicy {
        /// The name that was given.
        name: String,
        /// The names in the catalogue.
        known: String,
        /// The names of the peers.
        peers: String,
    },
    /// Parameters that the policy does not take.
    #[error("policy `{policy}`: {}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Parameters {
        /// The policy.
        policy: String,
        /// What is wrong with them.
        errors: Vec<ParameterError>,
    },
    /// The scenario lists no policy and none was asked for.
    #[error("the scenario lists no [[policy]] to run")]
    NoPolicy,
}

/// One run of one cell, as it is handed out to the cores.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    policy: usize,
    rho: f64,
    closes: Closes,
    seed: u64,
}

/// Runs every cell of `scenario` with the seeds 1, 2, …; `progress(done, all)` is called after
/// each run, from whichever thread did it. Gives the number of events besides.
pub fn run(
    scenario: &Scenario,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(RunResult, u64), SimError> {
    let settings = policies(&scenario.policies)?;
    let jobs = jobs(scenario);
    let outturns = play_all(scenario, &settings, &jobs, progress);
    let cell = |(jobs, outturns): (&[Job], &[Outturn])| {
        let (job, label) = (jobs[0], &scenario.policies[jobs[0].policy].label);
        let tallies: Vec<Tally> = outturns.iter().map(|outturn| outturn.tally.clone()).collect();
        Tally::cell(&tallies, scenario, label, job.rho, job.closes)
    };
    // The seeds of a cell stand together.
    let each = scenario.seeds as usize;
    let cells = jobs.chunks(each).zip(outturns.chunks(each)).map(cell).collect();
    let events = outturns.iter().map(|outturn| outturn.events).sum();
    let result = RunResult {
        scenario: scenario.name.clone(),
        seeds: seeds(scenario).collect(),
        invalid: None,
        cells,
    };
    Ok((result, events))
}

/// The settings of each policy that a scenario lists.
pub fn policies(choices: &[PolicyChoice]) -> Result<Vec<Settings>, SimError> {
    if choices.is_empty() {
        return Err(SimError::NoPolicy);
    }
    choices.iter().map(settings).collect()
}

fn settings(choice: &PolicyChoice) -> Result<Settings, SimError> {
    let found = catalog::find(&choice.name).or_else(|| peers::find(&choice.name));
    let policy = found.ok_or_else(|| SimError::UnknownPolicy {
        name: choice.name.clone(),
        known: names(&catalog::POLICIES),
        peers: names(&peers::POLICIES),
    })?;
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    policy
        .settings(given)
        .map_err(|errors| SimError::Parameters { policy: choice.name.clone(), errors })
}

fn names(policies: &[Policy]) -> String {
    policies.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ")
}

fn seeds(scenario: &Scenario) -> impl Iterator<Item = u64> + use<> {
    1..=u64::from(scenario.seeds)
}

fn jobs(scenario: &Scenario) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &closes in &scenario.closes {
        for &rho in &scenario.rho {
            for policy in 0..scenario.policies.len() {
                jobs.extend(seeds(scenario).map(|seed| Job { policy, rho, closes, seed }));
            }
        }
    }
    jobs
}

/// Plays the jobs on as many threads as there are cores; the results are in the order of the
/// jobs, so they do not depend on the machine.
fn play_all(
    scenario: &Scenario,
    settings: &[Settings],
    jobs: &[Job],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Outturn> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Outturn>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((index, job)) = take(&next, jobs) {
            let Job { rho, closes, seed, policy, .. } = *job;
            let outturn = play(Case { scenario, settings: &settings[policy], rho, closes, seed });
            *results[index].lock().expect("no thread panics with this lock") = Some(outturn);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let taken = |slot: Mutex<Option<Outturn>>| {
        slot.into_inner().ok().flatten().expect("every job was taken and played to its end")
    };
    results.into_iter().map(taken).collect()
}

fn take<'j>(next: &AtomicUsize, jobs: &'j [Job]) -> Option<(usize, &'j Job)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}
