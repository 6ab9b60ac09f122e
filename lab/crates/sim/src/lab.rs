//! Runs all cells of one or many scenarios on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bywash_engine::catalog::{
    self, Decides, LimitSettings, Parameter, ParameterError, Policy, Schedulers, Settings,
    TerminationSettings,
};
use bywash_scenario::{
    Closes, Departures, PartChoice, PolicyChoice, PrincipalKind, ResultRow, RunResult, Scenario,
    Tally, Throttle, guess,
};

use bywash_units::TimeSpan;

use crate::adversary::AdversaryResults;
use crate::case::{Case, RunOutput, Trace};
use crate::peers;
use crate::world::play;

/// The reason why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Neither the catalogue nor the peers have a policy of that name.
    #[error("there is no policy `{name}`; {there_is}")]
    UnknownPolicy {
        /// The given name.
        name: String,
        /// The name that was probably meant, and all known names.
        there_is: String,
    },
    /// Neither the catalogue nor the peers have a limit of that name.
    #[error("there is no limit `{name}`; {there_is}")]
    UnknownLimit {
        /// The given name.
        name: String,
        /// The name that was probably meant, and all known names.
        there_is: String,
    },
    /// The catalogue has no termination policy of that name.
    #[error("there is no termination `{name}`; {there_is}")]
    UnknownTermination {
        /// The given name.
        name: String,
        /// The name that was probably meant, and all known names.
        there_is: String,
    },
    /// The policy, limit or termination policy does not accept these parameters.
    #[error("policy `{policy}`: {wrong}")]
    Parameters {
        /// The name of the policy.
        policy: String,
        /// All errors in the parameters.
        wrong: String,
    },
    /// The run is too small or too large: no visitor would arrive, or it would take too long.
    #[error(
        "at ρ = {rho} about {comers:.1e} visitors and adversaries would arrive in a run of \
         {lasts}, at most {rate:.1e} per second; a run needs 1 to {MOST_COMERS:e} arrivals, at \
         most {MOST_RATE:e} per second, in at most a year: change the service times, the run's \
         length or rho"
    )]
    Size {
        /// The level of load.
        rho: f64,
        /// The expected number of arrivals.
        comers: f64,
        /// The highest arrival rate per second.
        rate: f64,
        /// How long they arrive.
        lasts: TimeSpan,
    },
    /// An error in a line of the file.
    #[error("line {line}: {source}")]
    At {
        /// The line.
        line: usize,
        /// The error.
        source: Box<Self>,
    },
    /// Several errors.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Self>),
    /// The scenario lists no policy, and none was given.
    #[error("the scenario lists no [[policy]] to run")]
    NoPolicy,
}

/// The most arrivals in one run: some hours of a core.
const MOST_COMERS: f64 = 1e9;
/// The most arrivals per second; more would arrive in the same nanosecond.
const MOST_RATE: f64 = 1e7;

/// One run of one cell, to be executed by a core.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    scenario: usize,
    policy: usize,
    rho: f64,
    closes: Closes,
    seed: u64,
}

/// Runs every cell of `scenario` with each of its seeds. After each run, the thread that executed
/// it calls `progress(done, all)`. Returns the result and the number of events.
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

/// Runs that are executed before their tallies become cells. A tally has a histogram for each
/// class, and a cell only the printed figures.
const TOGETHER: usize = 256;

/// Runs many scenarios, each as [`run`] does. No core waits for the last run of one scenario before
/// it begins with the next. The results are in the order of the scenarios.
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

/// Returns the result of one scenario from its jobs and their outputs.
fn result(scenario: &Scenario, jobs: &[Job], outputs: &[RunOutput]) -> RunResult {
    let cell = |(jobs, outputs): (&[Job], &[RunOutput])| {
        let (job, label) = (jobs[0], &scenario.policies[jobs[0].policy].label);
        let tallies: Vec<Tally> = outputs.iter().map(|output| output.tally.clone()).collect();
        let hostile = AdversaryResults::sum(outputs.iter().filter_map(|output| output.hostile));
        ResultRow { hostile, ..Tally::result_row(&tallies, scenario, label, job.rho, job.closes) }
    };
    // The runs of a cell are adjacent.
    let each = scenario.seeds as usize;
    RunResult {
        scenario: scenario.name.clone(),
        seeds: scenario.seed_numbers().collect(),
        invalid: None,
        cells: jobs.chunks(each).zip(outputs.chunks(each)).map(cell).collect(),
    }
}

/// One run with its trace.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The label of its policy.
    pub label: String,
    /// The level of load.
    pub rho: f64,
    /// Whether departures were seen.
    pub closes: Closes,
    /// The seed of its visitors.
    pub seed: u64,
    /// The output; the trace has one entry for each step.
    pub output: RunOutput,
}

/// Runs every cell of `scenario` as [`run`] does, and records traces. The runs of a cell are
/// adjacent.
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

/// The resolved settings of a scenario's policy.
#[derive(Clone, Debug)]
struct Chosen {
    settings: Settings,
    limit: LimitSettings,
    termination: TerminationSettings,
    throttles: Vec<Throttle>,
    principal: PrincipalKind,
    departures: Departures,
}

/// Checks that these policies can be simulated.
///
/// # Errors
///
/// Returns the errors of [`run`].
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

/// Resolves policies. `slots` is the limit of those without their own.
fn choose(policies: &[PolicyChoice], slots: u32) -> Result<Vec<Chosen>, SimError> {
    if policies.is_empty() {
        return Err(SimError::NoPolicy);
    }
    let (mut chosen, mut wrong) = (Vec::new(), Vec::new());
    for choice in policies {
        match choose_one(choice, slots) {
            Ok(one) => chosen.push(one),
            Err(error) => wrong.push(match choice.line {
                Some(line) => SimError::At { line, source: Box::new(error) },
                None => error,
            }),
        }
    }
    match wrong.len() {
        0 => Ok(chosen),
        1 => Err(wrong.remove(0)),
        _ => Err(SimError::Several(wrong)),
    }
}

fn choose_one(choice: &PolicyChoice, slots: u32) -> Result<Chosen, SimError> {
    let limit = match &choice.concurrency {
        None => LimitSettings::from(slots),
        Some(limit) => limit_of(limit)?,
    };
    let settings = settings(choice, limit.limit().slots())?;
    // A peer is another program, which sees addresses whatever the scenario sets for the gateway.
    let is_peer = peers::find(&choice.name).is_some();
    let principal = if is_peer { PrincipalKind::Address } else { choice.principal };
    let termination = match &choice.termination {
        // A peer terminates no request by default.
        None if is_peer => TerminationSettings::never(),
        None => TerminationSettings::default(),
        Some(termination) => termination_of(termination)?,
    };
    let (throttles, departures) = (choice.throttles.clone(), choice.departures);
    Ok(Chosen { settings, limit, termination, throttles, principal, departures })
}

fn limit_of(choice: &PartChoice) -> Result<LimitSettings, SimError> {
    let found = catalog::find_limit(&choice.name).or_else(|| peers::find_limit(&choice.name));
    let policy = found.ok_or_else(|| SimError::UnknownLimit {
        name: choice.name.clone(),
        there_is: there_is(&choice.name, &catalog::LIMITS, &peers::LIMITS),
    })?;
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let settings = policy.settings(given).map_err(|errors| refused(policy, &errors))?;
    match settings.contradiction() {
        Some(wrong) => Err(SimError::Parameters { policy: policy.name.into(), wrong }),
        None => Ok(settings),
    }
}

fn termination_of(choice: &PartChoice) -> Result<TerminationSettings, SimError> {
    let policy =
        catalog::find_termination(&choice.name).ok_or_else(|| SimError::UnknownTermination {
            name: choice.name.clone(),
            there_is: there_is(&choice.name, &catalog::TERMINATIONS, &[]),
        })?;
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    policy.settings(given).map_err(|errors| refused(policy, &errors))
}

/// Resolves the settings of a policy in front of a server with this many slots. A peer may have a
/// parameter for them.
fn settings(choice: &PolicyChoice, slots: u32) -> Result<Settings, SimError> {
    let found = catalog::find(&choice.name).or_else(|| peers::find(&choice.name));
    let policy: &'static Policy<Schedulers> = found.ok_or_else(|| SimError::UnknownPolicy {
        name: choice.name.clone(),
        there_is: there_is(&choice.name, &catalog::POLICIES, &peers::POLICIES),
    })?;
    let slots = slots.to_string();
    let takes_slots = policy.parameters.iter().any(|parameter| parameter.name == peers::SLOTS);
    let limit = takes_slots.then_some((peers::SLOTS, slots.as_str()));
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    policy.settings(limit.into_iter().chain(given)).map_err(|errors| refused(policy, &errors))
}

/// Returns the help for an unknown name. The name that was probably meant comes first, because a
/// command line truncates long text.
fn there_is<D: Decides>(name: &str, own: &[Policy<D>], peers: &[Policy<D>]) -> String {
    let meant = guess(name, own.iter().chain(peers).map(|policy| policy.name));
    let meant = meant.map_or(String::new(), |best| format!("did you mean `{best}`? "));
    let and = if peers.is_empty() { "" } else { ", and the peers' are " };
    let [own, peers] = [own, peers].map(names);
    format!("{meant}the names are {own}{and}{peers}")
}

fn names<D: Decides>(policies: &[Policy<D>]) -> String {
    policies.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ")
}

/// Returns the error for rejected parameters, with the names that were probably meant.
fn refused<D: Decides>(policy: &Policy<D>, errors: &[ParameterError]) -> SimError {
    let words = |error: &ParameterError| match meant(error, policy.parameters) {
        Some(best) => format!("{error}; did you mean `{best}`?"),
        None => error.to_string(),
    };
    let wrong = errors.iter().map(words).collect::<Vec<_>>().join("; ");
    SimError::Parameters { policy: policy.name.into(), wrong }
}

fn meant(error: &ParameterError, parameters: &'static [Parameter]) -> Option<&'static str> {
    match error {
        ParameterError::Unknown { name } => {
            guess(name, parameters.iter().map(|parameter| parameter.name))
        }
        ParameterError::Value { .. } => None,
    }
}

/// Returns the number of runs of a scenario.
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
        let Chosen { settings, limit, termination, throttles, principal, departures } =
            &chosen[scenario][policy];
        play(Case {
            scenario: scenarios[scenario],
            settings,
            limit,
            termination,
            throttles,
            principal: *principal,
            departures: *departures,
            rho,
            closes,
            seed,
            trace,
        })
    };
    on_all_cores(jobs, progress, one)
}

/// Executes all jobs on as many threads as there are cores, and calls `progress(done, all)` after
/// each. The results are in the order of the jobs, so they do not depend on the machine.
///
/// # Panics
///
/// Panics if a job does.
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
