//! `bywash lab sweep`: simulates the policies of a scenario with all combinations of values of some
//! of its keys.
//!
//! All combinations are checked before the first is simulated. Otherwise the last of a thousand
//! combinations could fail after an hour.

mod figures;

use std::path::Path;
use std::slice::from_ref;

use bywash_command::Failure;
use bywash_command::streams::to_json;
use bywash_command::streams::{print, print_json};
use bywash_report::{Report, Section};
use bywash_terminal::{Align, Table};

use bywash_scenario::{ResultRow, RunResult, Scenario, Setting};
use serde_json::{Value, json};

use super::narrowed::narrowed;
use super::{command, environment, prepare_report, progress_bar, read, write_report};
use crate::args::{Sweep, Vary};

/// The maximum number of combinations. A larger number is probably a mistake, or needs fewer values
/// for each key.
const MOST_COMBINATIONS: usize = 2000;

/// One combination of values, and its results.
#[derive(Debug)]
struct Row {
    /// The value of each varied key, in the order of the keys.
    values: Vec<String>,
    cells: Vec<ResultRow>,
}

pub(super) fn sweep(args: &Sweep) -> Result<(), Failure> {
    // Read the unchanged scenario first, so that its own errors are reported as such.
    let plain = read(&args.scenario)?;
    let text = text(&args.scenario)?;
    let combinations = combinations(&args.vary)?;
    reject_options_of_varied_keys(args)?;
    let scenarios = combinations.iter().map(|values| scenario(args, &text, values));
    let scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    args.report.as_deref().map_or(Ok(()), prepare_report)?;
    let results = play(&scenarios)?;
    let seeds = results.first().map_or(Vec::new(), |result| result.seeds.clone());
    let row = |(values, result): (Vec<String>, RunResult)| Row { values, cells: result.cells };
    let rows: Vec<Row> = combinations.into_iter().zip(results).map(row).collect();
    if let Some(path) = &args.report {
        write_report(path, &report(&plain.name, &args.vary, &rows))?;
    }
    if args.json {
        print_json(&to_value(&plain.name, &seeds, &args.vary, &rows)?)
    } else {
        print(&table(&args.vary, &rows).to_string())
    }
}

/// Returns all combinations of one value for each key. The last key changes fastest. Fails if there
/// are more than [`MOST_COMBINATIONS`].
fn combinations(vary: &[Vary]) -> Result<Vec<Vec<String>>, Failure> {
    let number = vary.iter().try_fold(1_usize, |n, vary| n.checked_mul(vary.values.len()));
    if number.is_none_or(|number| number > MOST_COMBINATIONS) {
        let words = format!("--vary: at most {MOST_COMBINATIONS} combinations at a time");
        return Err(Failure::usage(words));
    }
    let mut all = vec![Vec::new()];
    for (i, Vary { key, values }) in vary.iter().enumerate() {
        if vary[..i].iter().any(|other| other.key == *key) {
            return Err(Failure::usage(format!(
                "--vary {key}: give all values of a key in one --vary"
            )));
        }
        let with = |some: &Vec<String>| {
            let some = some.clone();
            values.iter().map(move |value| [&some[..], from_ref(value)].concat())
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

fn text(path: &Path) -> Result<String, Failure> {
    Scenario::text(path).map_err(|error| Failure::configuration(format!("bywash: {error}")))
}

/// Fails if `--rho`, `--seeds` or `--orders` sets a key that `--vary` varies.
fn reject_options_of_varied_keys(args: &Sweep) -> Result<(), Failure> {
    let options = [
        ("run.rho", "--rho", !args.narrow.rho.is_empty()),
        ("run.seeds", "--seeds", args.narrow.seeds.is_some()),
        ("run.duration", "--orders", args.narrow.orders.is_some()),
        ("run.orders", "--orders", args.narrow.orders.is_some()),
    ];
    for (key, option, given) in options {
        if given && args.vary.iter().any(|vary| vary.key == key) {
            return Err(Failure::usage(format!(
                "{key} is varied by --vary, so {option} cannot set it"
            )));
        }
    }
    Ok(())
}

/// Returns the scenario in which the varied keys have these values.
fn scenario(args: &Sweep, text: &str, values: &[String]) -> Result<Scenario, Failure> {
    let settings = args.vary.iter().zip(values);
    let settings: Vec<Setting> = settings
        .map(|(vary, value)| Setting { key: vary.key.clone(), value: value.clone() })
        .collect();
    let failure = |why: &str| Failure::usage(format!("--vary: {}", super::presentable(why)));
    let folder = args.scenario.parent().unwrap_or(Path::new("."));
    let scenario = Scenario::parse_with(text, folder, &settings);
    let scenario = scenario.map_err(|error| failure(&error.to_string()))?;
    let scenario = narrowed(scenario, &args.narrow)?;
    let with = values.iter().zip(&args.vary).map(|(value, vary)| format!("{} = {value}", vary.key));
    let with = with.collect::<Vec<_>>().join(", ");
    let checked = bywash_sim::lab::check_whole(&scenario);
    checked.map_err(|error| failure(&format!("with {with}: {error}")))?;
    Ok(scenario)
}

fn play(scenarios: &[Scenario]) -> Result<Vec<RunResult>, Failure> {
    let (bar, progress) = progress_bar();
    let (results, _) = bywash_sim::run_all(scenarios, &progress).map_err(Failure::running)?;
    bar.finish_and_clear();
    Ok(results)
}

/// Returns a table with a row for each combination and policy.
fn table(vary: &[Vary], rows: &[Row]) -> Table {
    let keys = vary.iter().map(|vary| (vary.key.as_str(), Align::Right));
    let columns: Vec<(&str, Align)> = keys
        .chain([
            ("policy", Align::Left),
            ("ρ", Align::Right),
            ("closes", Align::Left),
            ("completed %", Align::Right),
            ("timed out %", Align::Right),
            ("dropped %", Align::Right),
            ("useful work %", Align::Right),
            ("revenue %", Align::Right),
            ("orders", Align::Right),
        ])
        .collect();
    let mut table = Table::new(&columns);
    for row in rows {
        for cell in &row.cells {
            table.push(row.values.iter().cloned().chain(entries(cell)).collect());
        }
    }
    table
}

fn entries(cell: &ResultRow) -> [String; 9] {
    let of_base = |count: u64| format!("{:.1}", 100.0 * count as f64 / cell.base().max(1) as f64);
    let with = |share: f64, error: Option<f64>| match error {
        Some(error) => format!("{:.1} ± {:.1}", 100.0 * share, 100.0 * error),
        None => format!("{:.1}", 100.0 * share),
    };
    [
        cell.policy.clone(),
        cell.rho.to_string(),
        cell.closes.to_string(),
        of_base(cell.completed),
        of_base(cell.timed_out),
        of_base(cell.dropped),
        with(cell.useful_work, cell.useful_error),
        with(cell.revenue_share, cell.revenue_error),
        cell.orders.to_string(),
    ]
}

/// Returns the results of each combination as JSON, without the details that matter only for a
/// single run.
fn to_value(name: &str, seeds: &[u64], vary: &[Vary], rows: &[Row]) -> Result<Value, Failure> {
    let row = |row: &Row| {
        let settings = vary.iter().zip(&row.values);
        let settings: serde_json::Map<String, Value> =
            settings.map(|(vary, value)| (vary.key.clone(), json!(value))).collect();
        let mut cells = to_json(&row.cells)?;
        for cell in cells.as_array_mut().into_iter().flatten() {
            for key in ["timeline", "classes", "response"] {
                cell.as_object_mut().and_then(|cell| cell.remove(key));
            }
        }
        Ok(json!({ "settings": settings, "cells": cells }))
    };
    let rows = rows.iter().map(row).collect::<Result<Vec<_>, Failure>>()?;
    Ok(json!({ "scenario": name, "seeds": seeds, "rows": rows }))
}

fn report(name: &str, vary: &[Vary], rows: &[Row]) -> Report {
    let mut sections: Vec<Section> =
        (0..vary.len()).map(|key| figures::section(vary, key, rows)).collect();
    sections.push(Section {
        heading: "Every combination".into(),
        prose: String::new(),
        body: vec![bywash_report::Block::Table(table(vary, rows))],
    });
    let keys: Vec<&str> = vary.iter().map(|vary| vary.key.as_str()).collect();
    Report {
        title: format!("{name}: {}", keys.join(", ")),
        verdict: None,
        environment: environment(),
        command: command(),
        sections,
    }
}
