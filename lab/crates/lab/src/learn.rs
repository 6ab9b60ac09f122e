//! `bywash lab learn`: compares the worth of classes that the engine learns with their true worth
//! in the scenario. The worth of a class is the number of orders that a visitor is expected to make
//! after it.
//!
//! The true worth is computed from the scenario's session graph, which the engine does not know.
//! The engine sees only how sessions begin and end, and most sessions are refused when the load is
//! high.

use bywash_command::Failure;
use bywash_command::streams::{print, print_json};
use bywash_scenario::Scenario;
use bywash_sim::{Trace, Traced, trace};
use bywash_terminal::{Align, Table};
use bywash_units::TimeSpan;
use serde_json::{Value, json};

use super::{invalid_file, progress_bar, read};
use crate::args::LearnRun;

/// The interval in virtual time at which the learned worth is read.
const EVERY: TimeSpan = TimeSpan::from_secs(600);
/// The maximum relative error with which a learned worth counts as near the true worth.
const NEAR: f64 = 0.10;
/// The learned worth below which a class whose true worth is zero counts as near it, in orders per
/// visitor.
const NOTHING: f64 = 0.001;

pub(crate) fn learn(args: &LearnRun) -> Result<(), Failure> {
    let mut scenario = read(&args.scenario)?;
    scenario.seeds = args.seeds.unwrap_or(scenario.seeds);
    scenario.first_seed = args.first_seed.unwrap_or(scenario.first_seed);
    if !args.rho.is_empty() {
        scenario.rho.clone_from(&args.rho);
    }
    let truth = truth(&scenario).ok_or_else(|| {
        invalid_file(
            &args.scenario,
            "no session of this graph makes an order, so there is nothing to learn",
        )
    })?;
    if let Some(rho) = scenario.rho.iter().find(|rho| scenario.duration(**rho) < EVERY) {
        let (lasts, every) = (scenario.duration(*rho), EVERY);
        let why = format!(
            "at ρ = {rho} arrivals last {lasts}, but the learned worth is sampled every {every}: \
             extend the run"
        );
        return Err(invalid_file(&args.scenario, &why));
    }
    let (bar, progress) = progress_bar();
    let runs = trace(&scenario, Trace { every: EVERY, worths: true, arrivals: false }, &progress);
    let runs = runs.map_err(|error| invalid_file(&args.scenario, &error.to_string()))?;
    bar.finish_and_clear();
    let rows: Vec<Row> =
        runs.chunks(scenario.seeds as usize).map(|seeds| Row::new(seeds, &truth)).collect();
    if args.json {
        let classes = scenario.classes.iter().map(|class| class.name.as_str());
        let cells: Vec<Value> =
            rows.iter().map(|row| row.json(&classes.clone().collect::<Vec<_>>())).collect();
        return print_json(&json!({ "scenario": scenario.name, "truth": truth, "cells": cells }));
    }
    print(&table(&rows).to_string())
}

/// Returns the true worth of each class, in orders per visitor; `None` for a class that no session
/// reaches. Returns `None` in place of the whole list if sessions make no orders.
fn truth(scenario: &Scenario) -> Option<Vec<Option<f64>>> {
    let mut graph = scenario.graph.clone();
    let visits = graph.expected_visits()?;
    // A class that no session reaches has no known worth, and its transitions may form an endless
    // cycle.
    for (row, _) in graph.next.iter_mut().zip(&visits).filter(|(_, visits)| **visits <= 0.0) {
        row.clear();
    }
    let made = graph.orders_per_session()? > 0.0;
    let orders = graph.expected_orders()?;
    let of = |(visits, orders): (&f64, f64)| (*visits > 0.0).then_some(orders);
    made.then(|| visits.iter().zip(orders).map(of).collect())
}

/// The result of one policy under one load, over all seeds.
struct Row {
    label: String,
    rho: f64,
    closes: &'static str,
    /// The time in hours after which the worth of all classes stayed near the true worth. It has
    /// one entry for each seed in which the worth was near at the end of the run.
    near_after: Vec<f64>,
    seeds: usize,
    /// The relative errors at the end of the run. The outer list is by seed, and the inner list by
    /// class.
    errors: Vec<Vec<Option<f64>>>,
}

impl Row {
    fn new(seeds: &[Traced], truth: &[Option<f64>]) -> Self {
        let mut near_after: Vec<f64> =
            seeds.iter().filter_map(|run| near_after(run, truth)).collect();
        near_after.sort_by(f64::total_cmp);
        let last = |run: &Traced| {
            let learned = run.output.trace.last().map(|sample| &sample.worths[..]);
            errors(learned.unwrap_or(&[]), truth)
        };
        Self {
            label: seeds[0].label.clone(),
            rho: seeds[0].rho,
            closes: seeds[0].closes.name(),
            near_after,
            seeds: seeds.len(),
            errors: seeds.iter().map(last).collect(),
        }
    }

    fn all_errors(&self) -> impl Iterator<Item = f64> + '_ {
        self.errors.iter().flatten().flatten().map(|error| error.abs())
    }

    fn mean_error(&self) -> f64 {
        self.all_errors().sum::<f64>() / self.all_errors().count().max(1) as f64
    }

    fn largest_error(&self) -> f64 {
        self.all_errors().fold(0.0, f64::max)
    }

    fn json(&self, classes: &[&str]) -> Value {
        json!({
            "policy": self.label,
            "rho": self.rho,
            "closes": self.closes,
            "near_after_hours": self.near_after,
            "seeds": self.seeds,
            "classes": classes,
            "errors": self.errors,
        })
    }
}

/// Returns the relative error of the learned worth of each class; `None` for a class that no
/// session reaches. If the true worth is zero, the error is proportional to the learned worth, and
/// a learned worth of [`NOTHING`] has the error [`NEAR`].
fn errors(learned: &[f64], truth: &[Option<f64>]) -> Vec<Option<f64>> {
    let error = |(learned, truth): (&f64, &Option<f64>)| {
        truth.map(
            |truth| {
                if truth > 0.0 { learned / truth - 1.0 } else { NEAR * learned / NOTHING }
            },
        )
    };
    learned.iter().zip(truth).map(error).collect()
}

/// Returns the time in hours after which the worth of every class stayed near the true worth until
/// the end of the run; `None` if it did not.
fn near_after(run: &Traced, truth: &[Option<f64>]) -> Option<f64> {
    let is_far =
        |worths: &[f64]| errors(worths, truth).iter().flatten().any(|error| error.abs() > NEAR);
    let trace = &run.output.trace;
    let near = match trace.iter().rposition(|sample| is_far(&sample.worths)) {
        Some(last) => trace.get(last + 1)?,
        None => trace.first()?,
    };
    Some(near.at.as_secs_f64() / 3600.0)
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("policy", Align::Left),
        ("ρ", Align::Right),
        ("closes", Align::Left),
        ("within 10 % after hours", Align::Right),
        ("in seeds", Align::Right),
        ("mean error %", Align::Right),
        ("largest %", Align::Right),
    ]);
    for row in rows {
        let median = row.near_after.get(row.near_after.len() / 2);
        table.push(vec![
            row.label.clone(),
            row.rho.to_string(),
            row.closes.to_owned(),
            median.map_or("–".to_owned(), |hours| format!("{hours:.1}")),
            format!("{} of {}", row.near_after.len(), row.seeds),
            format!("{:.1}", 100.0 * row.mean_error()),
            format!("{:.1}", 100.0 * row.largest_error()),
        ]);
    }
    table
}
