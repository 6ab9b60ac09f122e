//! One side of a comparison: a stored result, or a policy of a scenario that is to be run.

use std::path::Path;

use bywash_command::Failure;
use bywash_scenario::file::Length;
use bywash_scenario::{Closes, RunResult, Scenario, guess};

use crate::args::Narrow;
use crate::narrowed::narrowed;
use crate::{invalid_file, presentable, progress_bar, read};

/// A result to compare, and its name on the command line.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) name: String,
    pub(super) result: RunResult,
}

/// The meaning of an argument of `lab compare`.
enum SideSource<'a> {
    Stored(&'a Path),
    Played(&'a Path, &'a str),
}

/// Returns both sides of a comparison. If both are scenarios, they are run in one batch.
pub(super) fn both(left: &str, right: &str, narrow: &Narrow) -> Result<[Side; 2], Failure> {
    let sources = [left, right].map(SideSource::of);
    let plays = sources.iter().any(|source| matches!(source, SideSource::Played(..)));
    let visitors = narrow.seeds.is_some() || narrow.first_seed.is_some();
    if !plays && (visitors || narrow.orders.is_some()) {
        let words = "--seeds, --first-seed and --orders apply to scenarios only, and both sides \
                     are stored results";
        return Err(Failure::usage(words));
    }
    let scenarios = sources.iter().filter_map(|source| source.scenario(narrow));
    let mut scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    // Read the stored results before any scenario is run.
    let stored = sources.iter().filter_map(|source| source.stored(narrow));
    let stored = stored.collect::<Result<Vec<_>, _>>()?;
    if let ([scenario], [result]) = (&mut scenarios[..], &stored[..]) {
        play_the_same(scenario, result, narrow);
    }
    let mut stored = stored.into_iter();
    let mut played = play(&scenarios)?.into_iter();
    let mut side = |name: &str, source: &SideSource<'_>| {
        let result = match source {
            SideSource::Stored(_) => stored.next(),
            SideSource::Played(..) => played.next(),
        };
        let result = result.expect("there is a result for each side, in their order");
        Side { name: name.to_owned(), result }
    };
    Ok([side(left, &sources[0]), side(right, &sources[1])])
}

/// Restricts a scenario for the comparison with `stored`. The scenario runs only at the loads and
/// with the visibilities of departures that the stored result has, because other result rows would
/// have no counterpart. It uses the seeds of the stored result, so that both sides can be compared
/// seed by seed. Arguments of the command line take precedence over both.
fn play_the_same(scenario: &mut Scenario, stored: &RunResult, narrow: &Narrow) {
    let is_level = |rho: &f64| *rho > 0.0 && *rho <= 1000.0;
    let mut levels: Vec<f64> = stored.cells.iter().map(|cell| cell.rho).filter(is_level).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if narrow.rho.is_empty() && (1..=100).contains(&levels.len()) {
        scenario.rho = levels;
    }
    let has = |closes: &Closes| stored.cells.iter().any(|cell| cell.closes == *closes);
    if scenario.closes.iter().any(has) {
        scenario.closes.retain(has);
    }
    let first = stored.seeds.first().copied().unwrap_or_default();
    // The ranges that `--first-seed` and `--seeds` accept.
    let seeds = (1..=1_000_000_000).contains(&first) && (1..=10_000).contains(&stored.seeds.len());
    let follow = || (first..).zip(&stored.seeds).all(|(number, seed)| number == *seed);
    let chosen = narrow.seeds.is_some() || narrow.first_seed.is_some();
    if !chosen && seeds && follow() {
        (scenario.first_seed, scenario.seeds) = (first, stored.seeds.len() as u32);
        if narrow.orders.is_none() {
            set_duration(scenario, stored);
        }
    }
}

/// Sets the duration of the scenario to that of the stored result, if the scenario's length is a
/// number of orders. The duration for a number of orders depends on the number of seeds, over which
/// the orders are divided. A live run is as long as one seed of its scenario file.
fn set_duration(scenario: &mut Scenario, stored: &RunResult) {
    let Length::Orders(orders) = scenario.length else { return };
    let Some(cell) = stored.cells.iter().find(|cell| cell.duration_s > 0.0) else { return };
    let factor = cell.duration_s / scenario.duration(cell.rho).as_secs_f64();
    if factor.is_finite() {
        scenario.length = Length::Orders(((orders as f64 * factor).round() as u64).max(1));
    }
}

fn play(scenarios: &[Scenario]) -> Result<Vec<RunResult>, Failure> {
    let (bar, progress) = progress_bar();
    let run = bywash_sim::run_all(scenarios, &progress);
    bar.finish_and_clear();
    Ok(run.map_err(Failure::running)?.0)
}

impl<'a> SideSource<'a> {
    /// Parses an argument. It is the name of a file if such a path exists. Otherwise it is
    /// `FILE:LABEL` if a file `FILE` exists, because file names may contain colons. Otherwise it is
    /// the name of a file.
    fn of(argument: &'a str) -> Self {
        let path = Path::new(argument);
        let split = |(at, _): (usize, &str)| (Path::new(&argument[..at]), &argument[at + 1..]);
        let mut pairs = argument.match_indices(':').map(split);
        match pairs.find(|(file, _)| file.is_file()).filter(|_| !path.exists()) {
            Some((file, label)) => Self::Played(file, label),
            None => Self::Stored(path),
        }
    }

    fn stored(&self, narrow: &Narrow) -> Option<Result<RunResult, Failure>> {
        let Self::Stored(path) = *self else { return None };
        Some(stored(path).map(|mut result| {
            let level = |rho: f64| narrow.rho.iter().any(|other| other.total_cmp(&rho).is_eq());
            result.cells.retain(|cell| {
                let policy = narrow.policy.is_empty() || narrow.policy.contains(&cell.policy);
                policy && (narrow.rho.is_empty() || level(cell.rho))
            });
            result
        }))
    }

    /// Returns the scenario to run, with only the named policy. Returns `None` for a stored result.
    fn scenario(&self, narrow: &Narrow) -> Option<Result<Scenario, Failure>> {
        let Self::Played(path, label) = *self else { return None };
        Some(one_policy(path, label, narrow))
    }
}

fn one_policy(path: &Path, label: &str, narrow: &Narrow) -> Result<Scenario, Failure> {
    if !narrow.policy.is_empty() {
        return Err(Failure::usage(
            "--policy cannot be used here: name the policy of a scenario after a colon \
             (SCENARIO:LABEL)",
        ));
    }
    let mut scenario = narrowed(read(path)?, narrow)?;
    let labels: Vec<String> = scenario.policies.iter().map(|policy| policy.label.clone()).collect();
    scenario.policies.retain(|policy| policy.label == label);
    if scenario.policies.is_empty() {
        let words = match guess(label, labels.iter().map(String::as_str)) {
            Some(best) => format!("did you mean `{best}`?"),
            None => format!("its policies are {}", labels.join(", ")),
        };
        let words = format!("{} has no policy `{label}`; {words}", path.display());
        return Err(Failure::usage(presentable(&words)));
    }
    // Check the scenario before any is run, so that an error is reported early and with the file's
    // name.
    bywash_sim::lab::check_whole(&scenario)
        .map_err(|error| invalid_file(path, &error.to_string()))?;
    Ok(scenario)
}

fn stored(path: &Path) -> Result<RunResult, Failure> {
    let text = Scenario::text(path);
    let text = text.map_err(|error| Failure::configuration(format!("bywash: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        invalid_file(path, &format!("not a result of lab sim --json or lab run --json: {error}"))
    })
}

impl Side {
    /// Returns the number of policies in the side's result.
    pub(super) fn policies(&self) -> usize {
        self.labels().len()
    }

    /// Describes the policies and offered loads of the side in a few words.
    pub(super) fn described(&self) -> String {
        let mut levels: Vec<String> =
            self.result.cells.iter().map(|cell| cell.rho.to_string()).collect();
        levels.dedup();
        let words = format!("{} at ρ {}", self.labels().join(", "), levels.join(", "));
        presentable(&words)
    }

    fn labels(&self) -> Vec<&str> {
        let mut labels: Vec<&str> =
            self.result.cells.iter().map(|cell| cell.policy.as_str()).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }
}
