//! `bywash lab limits`: measures how well concurrency policies adapt, in each phase between two
//! changes of the servers.

use bywash_command::Failure;
use bywash_command::streams::{print, print_json, say};
use bywash_scenario::{Closes, Scenario};
use bywash_sim::{Phase, Trace, Traced, phases, trace};
use bywash_terminal::{Align, Table};
use bywash_units::TimeSpan;
use serde_json::{Value, json};

use super::{invalid_file, progress_bar, read};
use crate::args::LimitsRun;

/// The interval between two samples of a run. It is shorter than the measuring window of any
/// concurrency policy.
const STEP: TimeSpan = TimeSpan::from_millis(100);

/// The maximum number of samples of a run. All samples are kept in memory until the end.
const MOST_STEPS: u64 = 10_000_000;

pub(crate) fn limits(args: &LimitsRun) -> Result<(), Failure> {
    let mut scenario = read(&args.scenario)?;
    scenario.seeds = args.seeds.unwrap_or(scenario.seeds);
    scenario.first_seed = args.first_seed.unwrap_or(scenario.first_seed);
    check_scenario(&scenario).map_err(|why| invalid_file(&args.scenario, &why))?;
    let (bar, progress) = progress_bar();
    let runs = trace(&scenario, Trace { every: STEP, worths: false, arrivals: false }, &progress);
    let runs = runs.map_err(|error| invalid_file(&args.scenario, &error.to_string()))?;
    bar.finish_and_clear();
    let judge = |seeds: &[Traced]| Verdict {
        label: seeds[0].label.clone(),
        rho: seeds[0].rho,
        closes: seeds[0].closes,
        phases: combine(
            &seeds.iter().map(|run| phases(&scenario, &run.output.trace)).collect::<Vec<_>>(),
        ),
    };
    let verdicts: Vec<Verdict> = runs.chunks(scenario.seeds as usize).map(judge).collect();
    if args.json {
        let cells: Vec<Value> = verdicts.iter().map(Verdict::json).collect();
        print_json(&json!({ "scenario": scenario.name, "seeds": scenario.seeds, "cells": cells }))
    } else {
        print(&table(&verdicts).to_string())
    }
}

/// Fails if the scenario has no concurrency policy to compare, or if its runs are too short or too
/// many to sample.
fn check_scenario(scenario: &Scenario) -> Result<(), String> {
    if scenario.policies.iter().all(|policy| policy.concurrency.is_none()) {
        return Err(
            "no [[policy]] has its own `concurrency`, so there is nothing to compare".into()
        );
    }
    let short = scenario.rho.iter().find(|rho| scenario.duration(**rho) < STEP * 20);
    if let Some(rho) = short {
        return Err(format!("at ρ = {rho} arrivals last {}", scenario.duration(*rho))
            + &format!(": too short for 20 samples, one every {STEP}"));
    }
    let steps = |rho: &f64| scenario.duration(*rho).as_nanos() / STEP.as_nanos();
    let runs = (scenario.policies.len() * scenario.closes.len()) as u64 * u64::from(scenario.seeds);
    let all = scenario.rho.iter().map(steps).max().unwrap_or(0).saturating_mul(runs);
    if all > MOST_STEPS {
        let why = format!("its {runs} runs at one ρ would be sampled {all} times");
        return Err(format!(
            "{why}, and at most {MOST_STEPS} are allowed: use fewer seeds or a shorter run"
        ));
    }
    if let Some(rho) = scenario.rho.iter().find(|rho| **rho <= 1.0) {
        say(format!(
            "note: at ρ = {rho} idle workers count as lost work: judge limits at a ρ that keeps \
             the queue full"
        ));
    }
    Ok(())
}

/// The result of one concurrency policy at one offered load, over all seeds.
struct Verdict {
    label: String,
    rho: f64,
    closes: Closes,
    phases: Vec<Mean>,
}

/// The combined values of a phase over all seeds: the median of the times to settle, and means of
/// the other values.
struct Mean {
    phase: Phase,
    /// The number of seeds in which the limit settled in the phase.
    settled: usize,
}

/// Combines the phases of all seeds. `seeds[i][j]` is the `j`-th phase of the run with the `i`-th
/// seed. All seeds have the same phases.
fn combine(seeds: &[Vec<Phase>]) -> Vec<Mean> {
    let phase = |j: usize| {
        let all: Vec<&Phase> = seeds.iter().filter_map(|phases| phases.get(j)).collect();
        let mean = |of: fn(&Phase) -> f64| {
            all.iter().map(|phase| of(phase)).sum::<f64>() / all.len() as f64
        };
        let mut times: Vec<Option<TimeSpan>> = all.iter().map(|phase| phase.settled).collect();
        // `None` means that the limit never settled. It sorts after any time.
        times.sort_by_key(|time| time.unwrap_or(TimeSpan::MAX));
        let phase = Phase {
            settled: times[times.len() / 2],
            lost: mean(|phase| phase.lost),
            inside: mean(|phase| phase.inside),
            slots: mean(|phase| phase.slots),
            workers: mean(|phase| phase.workers),
            ..*all[0]
        };
        Mean { phase, settled: times.iter().flatten().count() }
    };
    (0..seeds.first().map_or(0, Vec::len)).map(phase).collect()
}

impl Verdict {
    fn json(&self) -> Value {
        let phase = |Mean { phase, settled }: &Mean| {
            json!({
                "from_s": phase.from.as_secs_f64(),
                "to_s": phase.to.as_secs_f64(),
                "slots": phase.slots,
                "workers": phase.workers,
                "settled_s": phase.settled.map(TimeSpan::as_secs_f64),
                "settled_seeds": settled,
                "lost": phase.lost,
                "inside": phase.inside,
            })
        };
        let phases: Vec<Value> = self.phases.iter().map(phase).collect();
        json!({
            "limit": self.label,
            "rho": self.rho,
            "closes": self.closes,
            "phases": phases,
        })
    }

    fn rows(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        self.phases.iter().map(|Mean { phase, .. }| {
            vec![
                self.label.clone(),
                self.rho.to_string(),
                self.closes.to_string(),
                format!("{:.0}", phase.from.as_secs_f64()),
                format!("{:.1}", phase.workers),
                format!("{:.1}", phase.slots),
                phase.settled.map_or_else(
                    || "never".to_owned(),
                    |settled| format!("{:.1}", settled.as_secs_f64()),
                ),
                format!("{:.1}", (phase.lost * 100.0).max(0.0)),
                format!("{:.2}", phase.inside),
            ]
        })
    }
}

/// Returns the table of all verdicts. Its rows are in the order of the phases, so that the
/// concurrency policies can be compared line by line.
fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&[
        ("limit", Align::Left),
        ("ρ", Align::Right),
        ("closes", Align::Left),
        ("from s", Align::Right),
        ("workers", Align::Right),
        ("slots", Align::Right),
        ("settled s", Align::Right),
        ("lost %", Align::Right),
        ("inside per worker", Align::Right),
    ]);
    let rows: Vec<Vec<Vec<String>>> =
        verdicts.iter().map(|verdict| verdict.rows().collect()).collect();
    for phase in 0..rows.first().map_or(0, Vec::len) {
        rows.iter().filter_map(|rows| rows.get(phase)).for_each(|row| table.push(row.clone()));
    }
    table
}
