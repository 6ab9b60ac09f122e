//! `bywash lab elephants`: measures how reliably the search for elephants finds known elephants in
//! simulated observations.

use bywash_command::Failure;
use bywash_command::streams::{print, print_json};
use bywash_sim::elephants::{Load, Score, SimulationSettings, Site, Verdict, judge};
use bywash_sim::on_all_cores;
use bywash_terminal::{Align, Table};
use bywash_units::TimeSpan;
use serde_json::{Value, json};

use super::progress_bar;
use crate::args::ElephantsRun;

/// One cell of the grid of simulations: one combination of settings.
#[derive(Clone, Copy)]
struct Cell {
    load: Load,
    urls: u32,
    minutes: u32,
}

pub(crate) fn elephants(args: &ElephantsRun) -> Result<(), Failure> {
    let loads =
        [Load::Light, Load::Shared, Load::Steady, Load::Varying, Load::Saturated, Load::Strained];
    let minutes =
        |load, urls| args.minutes.iter().map(move |minutes| Cell { load, urls, minutes: *minutes });
    let cells: Vec<Cell> = loads
        .into_iter()
        .flat_map(|load| args.urls.iter().flat_map(move |urls| minutes(load, *urls)))
        .collect();
    let jobs: Vec<(Cell, u64)> = cells
        .iter()
        .flat_map(|cell| (1..=u64::from(args.seeds)).map(move |seed| (*cell, seed)))
        .collect();
    let (bar, progress) = progress_bar();
    let verdicts = on_all_cores(&jobs, &progress, |(cell, seed)| cell.play(*seed));
    bar.finish_and_clear();
    let rows: Vec<Row> = cells
        .iter()
        .zip(verdicts.chunks(args.seeds as usize))
        .map(|(cell, runs)| Row::of(*cell, runs))
        .collect();
    if args.json {
        let cells: Vec<Value> = rows.iter().map(Row::json).collect();
        print_json(&json!({ "seeds": args.seeds, "cells": cells }))
    } else {
        print(&table(&rows).to_string())
    }
}

impl Cell {
    fn play(self, seed: u64) -> Verdict {
        let mut site =
            if self.urls == 28 { Site::auction() } else { Site::flows(self.urls as usize) };
        let lasts = TimeSpan::from_secs(60 * u64::from(self.minutes));
        judge(
            &mut site,
            &SimulationSettings { load: self.load, lasts, appears: TimeSpan::ZERO, seed },
        )
    }

    const fn load(self) -> &'static str {
        match self.load {
            Load::Light => "light",
            Load::Shared => "shared",
            Load::Steady => "steady",
            Load::Varying => "varying",
            Load::Saturated => "saturated",
            Load::Strained => "strained",
        }
    }
}

/// The results of a cell over all seeds. A value is `None` if there are no data for it.
struct Row {
    cell: Cell,
    precision: Option<f64>,
    recall: f64,
    error: Option<f64>,
    covered: Option<f64>,
    pearson_precision: Option<f64>,
    pearson_recall: f64,
}

impl Row {
    fn of(cell: Cell, runs: &[Verdict]) -> Self {
        let share = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
        let sum = |of: &dyn Fn(&Verdict) -> usize| runs.iter().map(of).sum::<usize>();
        let (named, right) = (sum(&|run| run.ours.named), sum(&|run| run.ours.right));
        let Score { named: pearson_named, right: pearson_right } =
            Score { named: sum(&|run| run.pearson.named), right: sum(&|run| run.pearson.right) };
        let errors: Vec<f64> = runs.iter().flat_map(|run| run.errors.iter().copied()).collect();
        let elephants = (2 * runs.len()) as f64;
        Self {
            cell,
            precision: share(right, named),
            recall: right as f64 / elephants,
            error: (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64),
            // If the site is observed for less than 16 minutes, the detector reports no confidence
            // intervals.
            covered: share(sum(&|run| run.covered), right).filter(|_| cell.minutes >= 16),
            pearson_precision: share(pearson_right, pearson_named),
            pearson_recall: pearson_right as f64 / elephants,
        }
    }

    fn json(&self) -> Value {
        json!({
            "load": self.cell.load(),
            "urls": self.cell.urls,
            "minutes": self.cell.minutes,
            "precision": self.precision,
            "recall": self.recall,
            "cost_error": self.error,
            "covered": self.covered,
            "pearson": { "precision": self.pearson_precision, "recall": self.pearson_recall },
        })
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("load", Align::Left),
        ("URLs", Align::Right),
        ("minutes", Align::Right),
        ("precision", Align::Right),
        ("recall", Align::Right),
        ("cost error", Align::Right),
        ("covered", Align::Right),
        ("Pearson: precision", Align::Right),
        ("recall", Align::Right),
    ]);
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    for row in rows {
        table.push(vec![
            row.cell.load().to_owned(),
            row.cell.urls.to_string(),
            row.cell.minutes.to_string(),
            number(row.precision),
            number(Some(row.recall)),
            number(row.error),
            number(row.covered),
            number(row.pearson_precision),
            number(Some(row.pearson_recall)),
        ]);
    }
    table
}
