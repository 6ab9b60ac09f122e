//! The result of `lab peers`, as a table, as JSON and as a report.

use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::to_json;
use bywash_command::streams::{print, print_json};
use bywash_report::figure::{Axis, Bars, bars};
use bywash_report::{Block, Report, Section, result_report};
use bywash_scenario::{ResultRow, RunResult, Tally, standard_error};
use bywash_terminal::{Align, Table};
use serde_json::{Value, json};

use super::experiment::{Experiment, PeerRun};
use crate::args::Peer;
use crate::{command, environment, write_report};

/// The results of one peer at one offered load, over all seeds.
pub(super) struct Row {
    pub(super) peer: Peer,
    pub(super) cell: ResultRow,
    /// The total number of orders in the shops' databases, over all seeds.
    rows: u64,
    /// The standard error of the share of possible orders, estimated from the seeds; `None` for a
    /// single seed.
    error: Option<f64>,
    /// The 99th percentile of the response times of transactions, in milliseconds.
    p99_transactions: Option<f64>,
    /// The 99th percentile of the response times of browsing requests, in milliseconds.
    p99_browsing: Option<f64>,
    pub(super) invalid: Option<String>,
}

impl Row {
    pub(super) fn new(experiment: &Experiment, peer: Peer, rho: f64, played: &[PeerRun]) -> Self {
        let tallies: Vec<Tally> = played.iter().map(|played| played.tally.clone()).collect();
        let scenario = &experiment.scenario;
        let cell = |tallies: &[Tally]| {
            Tally::result_row(tallies, scenario, peer.name(), rho, experiment.closes)
        };
        let share = |played: &PeerRun| {
            played.rows as f64 / cell(std::slice::from_ref(&played.tally)).orders_possible.max(1.0)
        };
        let shares: Vec<f64> = played.iter().map(share).collect();
        let cell = cell(&tallies);
        Self {
            peer,
            rows: played.iter().map(|played| played.rows).sum(),
            error: standard_error(&shares),
            p99_transactions: cell.response.transactions.quantile_ms(0.99),
            p99_browsing: cell.response.browsing.quantile_ms(0.99),
            invalid: played.iter().find_map(|played| played.invalid.clone()),
            cell,
        }
    }

    fn of_the_possible(&self) -> String {
        let share = percent(self.rows as f64 / self.cell.orders_possible.max(1.0));
        self.error.map_or(share.clone(), |error| format!("{share} ± {}", percent(error)))
    }

    fn cells(&self) -> Vec<String> {
        let ResultRow { rho, generated, completed, timed_out, dropped, failed, .. } = &self.cell;
        let share = |part: &u64| percent(*part as f64 / (*generated).max(1) as f64);
        let millis = |ms: Option<f64>| ms.map_or("–".into(), |ms| format!("{ms:.0}"));
        vec![
            rho.to_string(),
            self.peer.name().to_owned() + if self.invalid.is_some() { " (invalid)" } else { "" },
            self.rows.to_string(),
            self.of_the_possible(),
            percent(self.cell.useful_work),
            self.cell.wasted_work.map_or("–".into(), percent),
            millis(self.p99_transactions),
            millis(self.p99_browsing),
            share(completed),
            share(dropped),
            share(timed_out),
            share(failed),
        ]
    }
}

/// All measurements of a comparison, and the conditions under which they were made.
pub(super) struct Comparison<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) rows: Vec<Row>,
    pub(super) present: &'a [(Peer, String)],
    pub(super) left_out: Vec<Peer>,
}

impl Comparison<'_> {
    /// Returns the result in the format of every run, without the values that only `lab peers` has.
    pub(super) fn result(&self) -> RunResult {
        let scenario = &self.experiment.scenario;
        RunResult {
            scenario: scenario.name.clone(),
            seeds: scenario.seed_numbers().collect(),
            invalid: self.rows.iter().find_map(|row| row.invalid.clone()),
            cells: self.rows.iter().map(|row| row.cell.clone()).collect(),
        }
    }

    /// Prints the comparison as a table or as JSON. Writes a report if a path is given.
    pub(super) fn deliver(&self, json: bool, report: Option<&Path>) -> Result<(), Failure> {
        if let Some(path) = report {
            write_report(path, &self.report())?;
        }
        if json { print_json(&self.json()?) } else { print(&self.table().to_string()) }
    }

    fn table(&self) -> Table {
        let numbers = [
            "orders",
            "of the possible %",
            "useful work %",
            "wasted work %",
            "p99 transactions ms",
            "p99 browsing ms",
            "answered %",
            "refused %",
            "timed out %",
            "failed %",
        ];
        let mut columns = vec![("ρ", Align::Right), ("shop behind", Align::Left)];
        columns.extend(numbers.map(|name| (name, Align::Right)));
        let mut table = Table::new(&columns);
        self.rows.iter().for_each(|row| table.push(row.cells()));
        table
    }

    /// Returns the result as JSON: the format of every run, with the values that only `lab peers`
    /// has added.
    fn json(&self) -> Result<Value, Failure> {
        let mut json = to_json(&self.result())?;
        for (row, cell) in self.rows.iter().zip(json["cells"].as_array_mut().into_iter().flatten())
        {
            cell["orders_in_database"] = row.rows.into();
            cell["orders_error"] = row.error.into();
            cell["p99_transactions_ms"] = row.p99_transactions.into();
            cell["p99_browsing_ms"] = row.p99_browsing.into();
            cell["invalid"] = row.invalid.clone().into();
        }
        let peer =
            |(peer, version): &(Peer, String)| json!({"peer": peer.name(), "version": version});
        json["limit"] = self.experiment.limit.into();
        json["workers"] = self.experiment.scenario.workers.into();
        json["peers"] = self.present.iter().map(peer).collect();
        json["left_out"] = self.left_out.iter().map(|peer| peer.name()).collect();
        Ok(json)
    }

    fn report(&self) -> Report {
        let mut environment = environment();
        let Experiment { scenario, limit, .. } = self.experiment;
        environment.push(("limit".into(), format!("{limit}, {} workers", scenario.workers)));
        environment.extend(
            self.present.iter().map(|(peer, version)| (peer.name().to_owned(), version.clone())),
        );
        let mut report = result_report(&self.result(), &command(), environment);
        report.sections.insert(0, self.side_by_side());
        report
    }

    fn side_by_side(&self) -> Section {
        let orders = self.bars("Orders in the shop's database", "orders", |row| row.rows as f64);
        let useful =
            self.bars("Useful work", "service time answered in time, % of the possible", |row| {
                row.cell.useful_work * 100.0
            });
        Section {
            heading: "Side by side".into(),
            prose: "The same visitors came to every peer, at the same moments. An order is a \
                    committed row. The possible orders are what the visitors meant to buy, times \
                    the share of the load that the shop could carry. A peer that serves buyers \
                    first can exceed them."
                .into(),
            body: vec![Block::Figure(orders), Block::Figure(useful), Block::Table(self.table())],
        }
    }

    fn bars(
        &self,
        title: &str,
        axis: &str,
        value: impl Fn(&Row) -> f64,
    ) -> bywash_report::figure::Svg {
        let group = |rho: &f64| {
            let of = |(peer, _): &(Peer, String)| {
                let mine = |row: &&Row| row.peer == *peer && row.cell.rho.total_cmp(rho).is_eq();
                self.rows.iter().find(mine).map_or(f64::NAN, &value)
            };
            (format!("ρ = {rho}"), self.present.iter().map(of).collect())
        };
        bars(&Bars {
            title: title.into(),
            axis: Axis { title: axis.into(), log: false, cover: vec![0.0] },
            series: self.present.iter().map(|(peer, _)| peer.name().to_owned()).collect(),
            groups: self.experiment.scenario.rho.iter().map(group).collect(),
            reference: None,
        })
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}
