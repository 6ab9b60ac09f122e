//! All cells of a scenario, or of many, on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bywash_engine::catalog::{
    self, Decides, LimitSettings, Orders, Parameter, ParameterError, Policy, Settings,
    TerminationSettings,
};
use bywash_scenario::{
    Cell, Charge, Closes, Departures, PartChoice, PolicyChoice, RunResult, Scenario, Tally,
    Throttle, guess,
};

use bywash_units::Span;

use crate::adversary::Got;
use crate::case::{Case, Outturn, Trace};
use crate::peers;
use crate::world::play;

/// Why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Neither the catalogue nor the peers have a policy of that name.
    #[error("there is no policy `{name}`; {there_is}")]
    UnknownPolicy {
        /// The name that was given.
        name: String,
        /// The name that was probably meant, and those that there are.
        there_is: String,
    },
    /// Neither the catalogue nor the peers have a limit of that name.
    #[error("there is no limit `{name}`; {there_is}")]
    UnknownLimit {
        /// The name that was given.
        name: String,
        /// The name that was probably meant, and those that there are.
        there_is: String,
    },
    /// The catalogue has no termination of that name.
    #[error("there is no termination `{name}`; {there_is}")]
    UnknownTermination {
        /// The name that was given.
        name: String,
        /// The name that was probably meant, and those that there are.
        there_is: String,
    },
    /// Parameters that the policy, limit or termination does not take.
    #[error("policy `{policy}`: {wrong}")]
    Parameters {
        /// The policy.
        policy: String,
        /// What is wrong with them, all of it.
        wrong: String,
    },
    /// It is over before anybody comes, or never.
    #[error(
        "at ρ = {rho} about {comers:.1e} visitors and adversaries would come in a run of {lasts}, at most \
         {rate:.1e} a second; it takes 1 to {MOST_COMERS:e}, {MOST_RATE:e} a second and a year: look at \
         service times, the run's length and rho"
    )]
    Size {
        /// The level of load.
        rho: f64,
        /// How many are expected.
        comers: f64,
        /// How many in a second, at most.
        rate: f64,
        /// How long they come.
        lasts: Span,
    },
    /// It stands in a line of a file.
    #[error("line {line}: {source}")]
    At {
        /// Which one.
        line: usize,
        /// What is wrong there.
        source: Box<Self>,
    },
    /// More than one thing is wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Self>),
    /// The scenario lists no policy and none was asked for.
    #[error("the scenario lists no [[policy]] to run")]
    NoPolicy,
}

/// In one run: some hours of a core.
const MOST_COMERS: f64 = 1e9;
/// In a second: more would come at the same nanosecond.
const MOST_RATE: f64 = 1e7;

/// One run of one cell, as it is handed out to the cores.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    scenario: usize,
    policy: usize,
    rho: f64,
    closes: Closes,
    seed: u64,
}

/// Runs every cell of `scenario` with each of its seeds; `progress(done, all)` is called after
/// each run, from whichever thread did it. Gives the number of events besides.
///
/// # Errors
/// If the scenario names no policy, or one that is not as in the catalogue; if nobody would come, or
/// more than anybody waits for.
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

/// Runs that are played before their tallies become cells: a tally has a histogram for each class, a
/// cell only what is printed of it.
const TOGETHER: usize = 256;

/// As [`run`], for many scenarios at once: no core waits for the last run of one before it begins
/// with the next. The results are in the order of the scenarios.
///
/// # Errors
/// As [`run`], for the first scenario that has a mistake.
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
        let told = |done, _| progress(before + done, all);
        let (more, counted) = play_batch(&batch, &chosen, &told);
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
    let outturns = play_all(scenarios, chosen, &jobs, None, progress);
    let events = outturns.iter().map(|outturn| outturn.events).sum();
    let mut rest = (&jobs[..], &outturns[..]);
    let result = |scenario: &&Scenario| {
        let (own, others) = rest.0.split_at(runs(scenario));
        let (played, unread) = rest.1.split_at(own.len());
        rest = (others, unread);
        result(scenario, own, played)
    };
    (scenarios.iter().map(result).collect(), events)
}

/// The result of one scenario from its jobs and what they came to.
fn result(scenario: &Scenario, jobs: &[Job], outturns: &[Outturn]) -> RunResult {
    let cell = |(jobs, outturns): (&[Job], &[Outturn])| {
        let (job, label) = (jobs[0], &scenario.policies[jobs[0].policy].label);
        let tallies: Vec<Tally> = outturns.iter().map(|outturn| outturn.tally.clone()).collect();
        let hostile = Got::cell(outturns.iter().filter_map(|outturn| outturn.hostile));
        Cell { hostile, ..Tally::cell(&tallies, scenario, label, job.rho, job.closes) }
    };
    // The seeds of a cell stand together.
    let each = scenario.seeds as usize;
    RunResult {
        scenario: scenario.name.clone(),
        seeds: scenario.seed_numbers().collect(),
        invalid: None,
        cells: jobs.chunks(each).zip(outturns.chunks(each)).map(cell).collect(),
    }
}

/// One run with how things stood on the way.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The label of its policy.
    pub label: String,
    /// The level of load.
    pub rho: f64,
    /// Whether departures were seen.
    pub closes: Closes,
    /// Its visitors.
    pub seed: u64,
    /// What it yielded; the trace has one entry for each step.
    pub outturn: Outturn,
}

/// Runs every cell of `scenario` as [`run`] does, and writes down how things stand. The seeds of a
/// cell stand together.
pub fn trace(
    scenario: &Scenario,
    trace: Trace,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Traced>, SimError> {
    let chosen = chosen(scenario)?;
    let jobs = jobs((0, scenario));
    let outturns = play_all(&[scenario], &[chosen.as_slice()], &jobs, Some(trace), progress);
    let traced = |(job, outturn): (&Job, Outturn)| Traced {
        label: scenario.policies[job.policy].label.clone(),
        rho: job.rho,
        closes: job.closes,
        seed: job.seed,
        outturn,
    };
    Ok(jobs.iter().zip(outturns).map(traced).collect())
}

/// What a policy of a scenario is played with.
#[derive(Clone, Debug)]
struct Chosen {
    settings: Settings,
    limit: LimitSettings,
    termination: TerminationSettings,
    throttles: Vec<Throttle>,
    charge: Charge,
    departures: Departures,
}

/// Whether a scenario can be played with these policies.
///
/// # Errors
/// As [`run`].
pub fn check(policies: &[PolicyChoice]) -> Result<(), SimError> {
    choose(policies, 1).map(drop)
}

/// Whether a scenario can be played: with its policies, and in a time that somebody waits for.
///
/// # Errors
/// As [`run`].
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
            let active = Span::from_nanos(until.saturating_sub(adversary.from.as_nanos()));
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

/// What each is played with; `slots`: of those that are given no limit of their own.
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
    let limit = match &choice.limit {
        None => LimitSettings::from(slots),
        Some(limit) => limit_of(limit)?,
    };
    let settings = settings(choice, limit.limit().slots())?;
    // Another program sees addresses whatever ours is told.
    let is_peer = peers::find(&choice.name).is_some();
    let charge = if is_peer { Charge::Address } else { choice.charge };
    let termination = match &choice.termination {
        // Another program stops nobody for its age, if nothing is said.
        None if is_peer => TerminationSettings::never(),
        None => TerminationSettings::default(),
        Some(termination) => termination_of(termination)?,
    };
    let (throttles, departures) = (choice.throttles.clone(), choice.departures);
    Ok(Chosen { settings, limit, termination, throttles, charge, departures })
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

/// The settings of a policy before a server of so many slots, which a peer may be told.
fn settings(choice: &PolicyChoice, slots: u32) -> Result<Settings, SimError> {
    let found = catalog::find(&choice.name).or_else(|| peers::find(&choice.name));
    let policy: &'static Policy<Orders> = found.ok_or_else(|| SimError::UnknownPolicy {
        name: choice.name.clone(),
        there_is: there_is(&choice.name, &catalog::POLICIES, &peers::POLICIES),
    })?;
    let slots = slots.to_string();
    let is_told = policy.parameters.iter().any(|parameter| parameter.name == peers::SLOTS);
    let told = is_told.then_some((peers::SLOTS, slots.as_str()));
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    policy.settings(told.into_iter().chain(given)).map_err(|errors| refused(policy, &errors))
}

/// What to say to a name that is none; the name that was probably meant first, as a command line cuts
/// what is long.
fn there_is<D: Decides>(name: &str, own: &[Policy<D>], peers: &[Policy<D>]) -> String {
    let meant = guess(name, own.iter().chain(peers).map(|policy| policy.name));
    let meant = meant.map_or(String::new(), |best| format!("did you mean `{best}`? "));
    let and = if peers.is_empty() { "" } else { ", and of the peers " };
    let [own, peers] = [own, peers].map(names);
    format!("{meant}there are {own}{and}{peers}")
}

fn names<D: Decides>(policies: &[Policy<D>]) -> String {
    policies.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ")
}

/// What is wrong with the parameters of a policy, with those that were probably meant.
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

/// How many runs a scenario asks for.
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
) -> Vec<Outturn> {
    let one = |job: &Job| {
        let Job { scenario, policy, rho, closes, seed } = *job;
        let Chosen { settings, limit, termination, throttles, charge, departures } =
            &chosen[scenario][policy];
        play(Case {
            scenario: scenarios[scenario],
            settings,
            limit,
            termination,
            throttles,
            charge: *charge,
            departures: *departures,
            rho,
            closes,
            seed,
            trace,
        })
    };
    on_all_cores(jobs, progress, one)
}

/// Does all jobs on as many threads as there are cores; `progress(done, all)` is called after each. The results are in
/// the order of the jobs, so they do not depend on the machine.
///
/// # Panics
/// If a job does.
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
            *results[index].lock().expect("no thread panics with this lock") = Some(result);
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
        slot.into_inner().ok().flatten().expect("every job was taken and done to its end")
    };
    results.into_iter().map(taken).collect()
}

fn take<'j, J>(next: &AtomicUsize, jobs: &'j [J]) -> Option<(usize, &'j J)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}
