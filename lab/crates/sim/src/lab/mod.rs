//! Runs all cells of one or many scenarios on all cores. A cell is one combination of policy, load
//! level and visibility of closes.

mod choice;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bywash_scenario::{Closes, PolicyChoice, ResultRow, RunResult, Scenario, Tally};
use bywash_units::TimeSpan;

use crate::adversary::AdversaryResults;
use crate::case::{Case, RunOutput, Trace};
use crate::world::play;
use choice::{Chosen, choose};

/// The reason why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Neither bywash nor any simulated peer, such as HAProxy, has a policy of that name.
    #[error("there is no policy `{name}`; {there_is}")]
    UnknownPolicy {
        /// The policy's name as given.
        name: String,
        /// A help text with the name that was probably meant and all known policy names.
        there_is: String,
    },
    /// Neither bywash nor any simulated peer, such as HAProxy, has a concurrency limit of that
    /// name.
    #[error("there is no limit `{name}`; {there_is}")]
    UnknownLimit {
        /// The limit's name as given.
        name: String,
        /// A help text with the name that was probably meant and all known limit names.
        there_is: String,
    },
    /// The engine has no termination policy of that name.
    #[error("there is no termination `{name}`; {there_is}")]
    UnknownTermination {
        /// The termination policy's name as given.
        name: String,
        /// A help text with the name that was probably meant and all known termination policies.
        there_is: String,
    },
    /// The policy, limit or termination policy does not accept these parameters.
    #[error("policy `{policy}`: {wrong}")]
    Parameters {
        /// The name of the policy.
        policy: String,
        /// All errors in the parameters, as one text.
        wrong: String,
    },
    /// The run is too small or too large: no visitor would arrive, or simulating all of them would
    /// take too long.
    #[error(
        "at ρ = {rho} about {comers:.1e} visitors and adversaries would arrive in a run of \
         {lasts}, at most {rate:.1e} per second; a run needs 1 to {MOST_COMERS:e} arrivals, at \
         most {MOST_RATE:e} per second, in at most a year: change the service times, the run's \
         length or rho"
    )]
    Size {
        /// The offered load of the run, as a multiple of the servers' capacity.
        rho: f64,
        /// The expected number of visitors and adversaries that arrive in the whole run.
        comers: f64,
        /// The highest arrival rate of visitors and adversaries, per second.
        rate: f64,
        /// The time during which visitors arrive.
        lasts: TimeSpan,
    },
    /// An error in a policy, with the line of the scenario file that defines the policy.
    #[error("line {line}: {source}")]
    At {
        /// The line of the scenario file, from 1.
        line: usize,
        /// The error in that line.
        source: Box<Self>,
    },
    /// Several errors, each shown on a line of its own.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Self>),
    /// The scenario lists no policy, and the caller gave none.
    #[error("the scenario lists no [[policy]] to run")]
    NoPolicy,
}

/// The maximum expected number of arrivals in one run. Simulating that many takes one core some
/// hours.
const MOST_COMERS: f64 = 1e9;
/// The maximum rate of arrivals per second. At a higher rate, several would arrive in the same
/// nanosecond.
const MOST_RATE: f64 = 1e7;

/// A run of one cell with one seed. One thread executes it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    scenario: usize,
    policy: usize,
    rho: f64,
    closes: Closes,
    seed: u64,
}

/// Runs every cell of `scenario` with each of its seeds. After each run, the thread that executed
/// it calls `progress(done, all)` with the number of finished runs and the number of all runs.
/// Returns the result, and the number of simulated events in all runs.
///
/// # Errors
///
/// Fails if the scenario names no policy or an invalid one. Also fails if no visitor would arrive,
/// or more than can be simulated in reasonable time.
pub fn run(
    scenario: &Scenario,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(RunResult, u64), SimError> {
    let chosen = chosen(scenario)?;
    let (results, events) = play_batch(&[scenario], &[chosen.as_slice()], progress);
    Ok((only(results), events))
}

fn only(results: Vec<RunResult>) -> RunResult {
    results.into_iter().next().expect("a batch of one scenario has one result")
}

/// The number of runs that are executed before their tallies are summed into cells. This bounds
/// memory: a tally has a histogram for each class, and a cell has only the printed figures.
const TOGETHER: usize = 256;

/// Runs many scenarios, each as [`run`] does, and returns their results in the order of
/// `scenarios`. A core that has no more runs of one scenario begins with the next scenario.
///
/// # Errors
///
/// Returns the errors of [`run`] for the first invalid scenario.
pub fn run_all(
    scenarios: &[Scenario],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(Vec<RunResult>, u64), SimError> {
    let chosen = scenarios.iter().map(chosen).collect::<Result<Vec<_>, _>>()?;
    let all = scenarios.iter().map(runs).sum();
    let (mut results, mut events, mut before) = (Vec::new(), 0, 0);
    while results.len() < scenarios.len() {
        let from = results.len();
        let mut batch = Vec::new();
        for scenario in &scenarios[from..] {
            if !batch.is_empty() && batch.iter().copied().map(runs).sum::<usize>() >= TOGETHER {
                break;
            }
            batch.push(scenario);
        }
        let chosen: Vec<&[Chosen]> =
            chosen[from..from + batch.len()].iter().map(Vec::as_slice).collect();
        let report = |done, _| progress(before + done, all);
        let (more, counted) = play_batch(&batch, &chosen, &report);
        results.extend(more);
        events += counted;
        before += batch.iter().copied().map(runs).sum::<usize>();
    }
    Ok((results, events))
}

fn play_batch(
    scenarios: &[&Scenario],
    chosen: &[&[Chosen]],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> (Vec<RunResult>, u64) {
    let jobs: Vec<Job> = scenarios.iter().copied().enumerate().flat_map(jobs).collect();
    let outputs = play_all(scenarios, chosen, &jobs, None, progress);
    let events = outputs.iter().map(|output| output.events).sum();
    let mut rest = (&jobs[..], &outputs[..]);
    let result = |scenario: &&Scenario| {
        let (own, others) = rest.0.split_at(runs(scenario));
        let (played, unread) = rest.1.split_at(own.len());
        rest = (others, unread);
        result(scenario, own, played)
    };
    (scenarios.iter().map(result).collect(), events)
}

/// Sums the outputs of one scenario's jobs into the scenario's result.
fn result(scenario: &Scenario, jobs: &[Job], outputs: &[RunOutput]) -> RunResult {
    let cell = |(jobs, outputs): (&[Job], &[RunOutput])| {
        let (job, label) = (jobs[0], &scenario.policies[jobs[0].policy].label);
        let tallies: Vec<Tally> = outputs.iter().map(|output| output.tally.clone()).collect();
        let hostile = AdversaryResults::sum(outputs.iter().filter_map(|output| output.hostile));
        ResultRow { hostile, ..Tally::result_row(&tallies, scenario, label, job.rho, job.closes) }
    };
    // The runs of one cell are adjacent in `jobs`.
    let each = scenario.seeds as usize;
    RunResult {
        scenario: scenario.name.clone(),
        seeds: scenario.seed_numbers().collect(),
        invalid: None,
        cells: jobs.chunks(each).zip(outputs.chunks(each)).map(cell).collect(),
    }
}

/// The output of one run with its trace, and the settings of the run.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The label of the policy of the run.
    pub label: String,
    /// The offered load of the run, as a multiple of the servers' capacity.
    pub rho: f64,
    /// Whether the server side could see clients leave.
    pub closes: Closes,
    /// The seed from which the visitors of the run were drawn.
    pub seed: u64,
    /// The output of the run. Its trace has one entry for each step of the requested trace.
    pub output: RunOutput,
}

/// Runs every cell of `scenario` as [`run`] does, and records a trace of each run. The runs of one
/// cell are adjacent in the returned list.
pub fn trace(
    scenario: &Scenario,
    trace: Trace,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Traced>, SimError> {
    let chosen = chosen(scenario)?;
    let jobs = jobs((0, scenario));
    let outputs = play_all(&[scenario], &[chosen.as_slice()], &jobs, Some(trace), progress);
    let traced = |(job, output): (&Job, RunOutput)| Traced {
        label: scenario.policies[job.policy].label.clone(),
        rho: job.rho,
        closes: job.closes,
        seed: job.seed,
        output,
    };
    Ok(jobs.iter().zip(outputs).map(traced).collect())
}

/// Checks that the policies and their parameters are known and valid.
///
/// # Errors
///
/// Returns the errors of [`run`] for unknown or invalid policies, and for an empty list.
pub fn check(policies: &[PolicyChoice]) -> Result<(), SimError> {
    choose(policies, 1).map(drop)
}

/// Checks that a scenario can be simulated with its policies, and in reasonable time.
///
/// # Errors
///
/// Returns the errors of [`run`].
pub fn check_whole(scenario: &Scenario) -> Result<(), SimError> {
    chosen(scenario).map(drop)
}

fn size(scenario: &Scenario) -> Result<(), SimError> {
    for &rho in &scenario.rho {
        let lasts = scenario.duration(rho);
        let (mut comers, mut rate) = (scenario.sessions(rho), scenario.peak_rate(rho).get());
        for adversary in &scenario.adversaries {
            let each = adversary.bursts(&scenario.classes, scenario.workers).get()
                * f64::from(adversary.burst);
            let until = adversary.until.min(lasts).as_nanos();
            let active = TimeSpan::from_nanos(until.saturating_sub(adversary.from.as_nanos()));
            comers += each * active.as_secs_f64();
            rate += each;
        }
        let some = (1.0..=MOST_COMERS).contains(&comers);
        if !some || rate > MOST_RATE || lasts > Scenario::LONGEST {
            return Err(SimError::Size { rho, comers, rate, lasts });
        }
    }
    Ok(())
}

fn chosen(scenario: &Scenario) -> Result<Vec<Chosen>, SimError> {
    size(scenario)?;
    choose(&scenario.policies, scenario.servers.limit.unwrap_or(scenario.workers))
}

/// Returns the number of runs of a scenario: its cells times its seeds.
pub fn runs(scenario: &Scenario) -> usize {
    let cells = scenario.closes.len() * scenario.rho.len() * scenario.policies.len();
    cells * scenario.seeds as usize
}

fn jobs((index, scenario): (usize, &Scenario)) -> Vec<Job> {
    let mut jobs = Vec::with_capacity(runs(scenario));
    for &closes in &scenario.closes {
        for &rho in &scenario.rho {
            for policy in 0..scenario.policies.len() {
                let job = |seed| Job { scenario: index, policy, rho, closes, seed };
                jobs.extend(scenario.seed_numbers().map(job));
            }
        }
    }
    jobs
}

fn play_all(
    scenarios: &[&Scenario],
    chosen: &[&[Chosen]],
    jobs: &[Job],
    trace: Option<Trace>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<RunOutput> {
    let one = |job: &Job| {
        let Job { scenario, policy, rho, closes, seed } = *job;
        let Chosen { settings, limit, termination, throttles, principal, departures, mode } =
            &chosen[scenario][policy];
        play(Case {
            scenario: scenarios[scenario],
            settings,
            limit,
            termination,
            throttles,
            principal: *principal,
            departures: *departures,
            mode: *mode,
            rho,
            closes,
            seed,
            trace,
        })
    };
    on_all_cores(jobs, progress, one)
}

/// Executes all jobs on as many threads as there are cores, and calls `progress(done, all)` after
/// each job, with the number of finished jobs and of all jobs. Returns the results in the order of
/// `jobs`, whichever thread finishes first.
///
/// # Panics
///
/// Panics if a job panics.
pub fn on_all_cores<J: Sync, R: Send>(
    jobs: &[J],
    progress: &(dyn Fn(usize, usize) + Sync),
    each: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((index, job)) = take(&next, jobs) {
            let result = each(job);
            *results[index].lock().expect("no thread panics while it holds this lock") =
                Some(result);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let taken = |slot: Mutex<Option<R>>| {
        slot.into_inner().ok().flatten().expect("every job was taken and completed")
    };
    results.into_iter().map(taken).collect()
}

fn take<'j, J>(next: &AtomicUsize, jobs: &'j [J]) -> Option<(usize, &'j J)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}
