//! `bywash lab peers`: compares bywash with other proxies in live runs.
//!
//! For each offered load, seed and peer, this command starts a new shop and, in front of it, the
//! peer with one worker. All peers get exactly the same visitors. At each load the peers take
//! turns, so that a machine that slows down during the comparison slows down for all of them. All
//! programs are on loopback and end with this command, however it ends.

mod experiment;
mod peer;
mod table;

use std::time::Duration;

use bywash_command::Failure;
use bywash_command::streams::{is_terminal, say};
use bywash_load::Progress;
use bywash_peer::child_guard;
use bywash_scenario::{Closes, Scenario};

use self::experiment::{DRAIN, Experiment, LearnedState, PeerRun};
use self::table::{Comparison, Row};
use super::live::Line;
use super::{invalid_file, prepare_report, read};
use crate::args::{Limit, Peer, PeersRun};

/// The maximum number of concurrent clients, if the system lets a process open enough descriptors.
const MOST_CLIENTS: u64 = 20_000;
/// The number of descriptors that a proxy needs in addition to two for each client.
const SPARE_FILES: u64 = 400;
/// The assumed time to start and stop a shop and a peer, for the estimated duration.
const CHANGE: Duration = Duration::from_secs(1);

pub(crate) fn peers(args: &PeersRun) -> Result<(), Failure> {
    // Start the guard first, so that an interrupted command leaves no process behind.
    child_guard::start().map_err(Failure::running)?;
    compare(args).inspect_err(|_| child_guard::wait_if_interrupted())
}

fn compare(args: &PeersRun) -> Result<(), Failure> {
    let experiment = experiment(args)?;
    args.report.as_deref().map_or(Ok(()), prepare_report)?;
    let (present, left_out) = find_installed(&experiment, args)?;
    for (peer, _) in &present {
        experiment.check(*peer)?;
    }
    if present.is_empty() {
        return Err(Failure::running("none of the requested peers is installed"));
    }
    let plan = Plan { experiment: &experiment, present: &present };
    say(plan.estimate());
    let mut rows = Vec::new();
    let ended = plan.play(&mut rows).inspect_err(|_| child_guard::wait_if_interrupted());
    if rows.is_empty() {
        return ended;
    }
    // Report the measurements that were made before a failure.
    let comparison = Comparison { experiment: &experiment, rows, present: &present, left_out };
    comparison.deliver(args.json, args.report.as_deref())?;
    ended?;
    match comparison.result().invalid {
        Some(why) => Err(Failure::running(format!("the run is invalid: {why}"))),
        None => Ok(()),
    }
}

fn experiment(args: &PeersRun) -> Result<Experiment, Failure> {
    let mut scenario = read(&args.scenario)?;
    if !args.rho.is_empty() {
        scenario.rho.clone_from(&args.rho);
    }
    scenario.seeds = args.seeds.unwrap_or(scenario.seeds);
    scenario.first_seed = args.first_seed.unwrap_or(scenario.first_seed);
    super::classes::checkout(&scenario).map_err(|why| invalid_file(&args.scenario, &why))?;
    let limit = args.limit.unwrap_or(Limit::Times(1)).slots(scenario.workers);
    let limit = limit.map_err(|why| Failure::usage(format!("--limit: {why}")))?;
    let files = bywash_sentry::raise_file_limit();
    Ok(Experiment {
        limit,
        closes: if args.hidden { Closes::Hidden } else { Closes::Visible },
        connections: (files.saturating_sub(SPARE_FILES) / 2).clamp(64, MOST_CLIENTS),
        envoy: args.envoy.clone(),
        scenario,
    })
}

/// The peers that were found on this machine, each with its version, and the peers that are not
/// installed.
type Found = (Vec<(Peer, String)>, Vec<Peer>);

/// Finds which of the requested peers are installed. Prints the version of each peer, or why it is
/// left out.
fn find_installed(experiment: &Experiment, args: &PeersRun) -> Result<Found, Failure> {
    let requested = if args.peers.is_empty() { Peer::ALL.to_vec() } else { args.peers.clone() };
    let (mut present, mut left_out) = (Vec::new(), Vec::new());
    for peer in requested {
        if left_out.contains(&peer) || present.iter().any(|(known, _)| *known == peer) {
            continue;
        }
        let program = experiment.program(peer)?;
        match peer.kind().version(&program) {
            Ok(version) => {
                say(format!("{peer:<14}  {version}"));
                present.push((peer, version));
            }
            Err(error) => {
                let program = program.display();
                say(format!("{peer:<14}  left out: {program} cannot be run: {error}"));
                left_out.push(peer);
            }
        }
    }
    Ok((present, left_out))
}

/// All runs of a comparison.
struct Plan<'a> {
    experiment: &'a Experiment,
    present: &'a [(Peer, String)],
}

impl Plan<'_> {
    fn run_count(&self) -> usize {
        self.experiment.scenario.rho.len()
            * self.experiment.scenario.seeds as usize
            * self.present.len()
    }

    fn estimate(&self) -> String {
        let Experiment { limit, closes, scenario, .. } = self.experiment;
        let Scenario { rho, seeds, workers, .. } = scenario;
        let each = |rho: &f64| scenario.duration(*rho).as_secs_f64();
        let times = f64::from(*seeds) * self.present.len() as f64;
        let least = times * rho.iter().map(|rho| each(rho) + CHANGE.as_secs_f64()).sum::<f64>();
        let most = least + self.run_count() as f64 * DRAIN.as_secs_f64();
        let minutes = |seconds: f64| (seconds / 60.0).ceil();
        let (runs, least, most) = (self.run_count(), minutes(least), minutes(most));
        format!(
            "limit {limit}, {workers} workers, closes {}; {runs} runs: about {least:.0} minutes, at \
             most {most:.0}",
            closes.name()
        )
    }

    /// Executes all runs. Adds a row to `rows` as soon as all seeds of the row have been run, so
    /// that a failure keeps the earlier rows.
    fn play(&self, rows: &mut Vec<Row>) -> Result<(), Failure> {
        let mut done = 0;
        let learned_state = self.learned_state()?;
        for rho in &self.experiment.scenario.rho {
            let mut level: Vec<(Peer, Vec<PeerRun>)> =
                self.present.iter().map(|(peer, _)| (*peer, Vec::new())).collect();
            for seed in self.experiment.scenario.seed_numbers() {
                for (peer, played) in &mut level {
                    done += 1;
                    let run = format!("{done}/{} ρ {rho}, seed {seed}, {peer}", self.run_count());
                    played.push(self.run(&run, *peer, *rho, seed, learned_state.as_ref())?);
                }
            }
            rows.extend(
                level
                    .into_iter()
                    .map(|(peer, played)| Row::new(self.experiment, peer, *rho, &played)),
            );
        }
        Ok(())
    }

    /// Executes the learning run if a peer that starts with learned state takes part. Otherwise
    /// returns `None`.
    fn learned_state(&self) -> Result<Option<LearnedState>, Failure> {
        let learns = self.present.iter().any(|(peer, _)| *peer == Peer::BywashLearned);
        let learn = || watched("the training run", |watch| self.experiment.learn(watch));
        learns.then(learn).transpose()
    }

    fn run(
        &self,
        run: &str,
        peer: Peer,
        rho: f64,
        seed: u64,
        learned_state: Option<&LearnedState>,
    ) -> Result<PeerRun, Failure> {
        let played =
            watched(run, |watch| self.experiment.play(peer, rho, seed, learned_state, watch))?;
        let flaw = played.invalid.as_ref().map_or(String::new(), |why| format!("; INVALID: {why}"));
        say(format!("{run}: {} orders{flaw}", played.rows));
        Ok(played)
    }
}

/// Calls `play`, and shows its progress on a terminal under the label `what`.
fn watched<T>(
    what: &str,
    play: impl FnOnce(&mut dyn FnMut(&Progress)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if !is_terminal() {
        return play(&mut |_| {});
    }
    say(what);
    let mut line = Line::new();
    let played = play(&mut |progress| line.show(progress))?;
    line.end();
    Ok(played)
}
