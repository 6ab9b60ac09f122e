//! The measured values of all rounds, and the tables that show them.

use super::connection_limit::CONNECTION_LIMIT;
use super::memory::MOST;
use super::pressure::PATIENCE;
use super::sessions::TABLE;
use super::trial::{Run, Shown, Trial};
use bywash_harness::peer::PeerKind;
use bywash_harness::report::Report;
use bywash_harness::stats::Spread;
use bywash_harness::table::Table;
use serde_json::{Value, json};

/// A column of the tables: a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// The program of the column.
    pub(super) kind: PeerKind,
    /// Whether the user selected the program.
    pub(super) is_wanted: bool,
    /// Whether the program can be started.
    pub(super) is_installed: bool,
}

/// The results of all trials of a run.
#[derive(Debug)]
pub(super) struct Results {
    columns: Vec<Column>,
    /// The values of the present trial. Each entry belongs to one round of one program, and has one
    /// value for each measure.
    rounds: Vec<(PeerKind, Vec<f64>)>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    shown: Shown,
    label: String,
    cells: Vec<String>,
    json: Value,
}

/// The way in which the values of several rounds are combined into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// The values are fractions. The combined value is their median in percent.
    Ratio,
    /// The values are 0 or 1. The combined value is the percentage of rounds in which the value is
    /// 1.
    Rounds,
    /// The values are numbers. The combined value is their median.
    Number,
}

impl Shown {
    fn measures(self) -> &'static [Measure] {
        use Measure::{Number, Ratio, Rounds};
        match self {
            Self::Slots => &[Ratio, Rounds, Rounds, Ratio],
            Self::Memory => &[Rounds, Number, Number, Ratio],
            Self::Shares => &[Ratio, Ratio, Rounds],
        }
    }

    fn method(self, run: &Run<'_>, rounds: u32) -> String {
        let (seconds, patience) = (run.length.as_secs(), PATIENCE.as_secs());
        match self {
            Self::Slots => format!(
                "useful work of visitors, relative to that before the attack / an upload of 8 MB \
                 at {} kB/s / a reader at 20 kB/s / an office of 500 connections behind one \
                 address, in percent of its requests.\n100 requests/s from visitors and 100 from \
                 the office, {patience} s of patience, 16 slots of 40 ms; the attack lasts \
                 {seconds} s; {rounds} rounds.",
                8_000_000 * 10 / (6 * seconds) / 1000
            ),
            Self::Memory => format!(
                "whether the program survived in a control group of {} MiB / the group's peak in \
                 MiB, page cache included / 99th percentile of 50 good clients in ms / share of \
                 them served, in percent.\nEvery kind: unfinished heads, unread and waiting \
                 bodies, open chunks, idle connections, TLS handshakes, HTTP/2 streams with \
                 bodies; {seconds} s; {rounds} rounds.",
                MOST >> 20
            ),
            Self::Shares => format!(
                "in percent. idle-seats: new clients served out of 200, while {CONNECTION_LIMIT} idle \
                 connections take all places. session-eviction: buyers whose standing is still \
                 known after {} invented sessions; the table has room for {TABLE}.\nblack-hole: \
                 good answers during {seconds} s in which one of two servers answers 500 at once \
                 and passes its health checks; nginx retries on the other server. watchers: /livez \
                 / /metrics / `bypass on` with 300 watchers connected. {rounds} rounds.",
                4 * TABLE
            ),
        }
    }
}

impl Results {
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rounds: Vec::new(), rows: Vec::new() }
    }

    /// Returns the programs that are selected and installed.
    pub(super) fn present(&self) -> impl Iterator<Item = PeerKind> {
        self.columns.iter().filter(|column| column.is_installed).map(|column| column.kind)
    }

    /// Adds the values that program `kind` reached in one round of `trial`.
    pub(super) fn add(&mut self, trial: &Trial, kind: PeerKind, values: &[f64]) {
        let cell = cell(trial.shown(), &[values]);
        eprintln!("  {cell}");
        self.rounds.push((kind, values.to_vec()));
    }

    /// Combines the rounds of `trial` into a row of its table, and discards the values of the
    /// rounds.
    pub(super) fn finish(&mut self, trial: &Trial) {
        let rounds = std::mem::take(&mut self.rounds);
        let of = |kind: PeerKind| -> Vec<&[f64]> {
            rounds.iter().filter(|(of, _)| *of == kind).map(|(_, values)| &values[..]).collect()
        };
        let show = |column: &Column| match of(column.kind) {
            _ if !column.is_wanted => "not requested".to_owned(),
            _ if !column.is_installed => "not installed".to_owned(),
            _ if !trial.applies_to(column.kind) => "–".to_owned(),
            values if values.is_empty() => "not measured".to_owned(),
            values => cell(trial.shown(), &values),
        };
        let cells = self.columns.iter().map(show).collect();
        let list: Vec<Value> = rounds
            .iter()
            .map(|(kind, values)| json!({ "program": kind.to_string(), "values": values }))
            .collect();
        let json = json!({ "attack": trial.label, "rounds": list });
        self.rows.push(Row { shown: trial.shown(), label: trial.label.clone(), cells, json });
    }

    /// Returns a report for each table that has at least one row.
    pub(super) fn reports(&self, run: &Run<'_>, rounds: u32) -> Vec<Report> {
        let tables =
            [(Shown::Slots, "slots"), (Shown::Memory, "memory"), (Shown::Shares, "shares")];
        let report = |(shown, name): (Shown, &str)| {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.shown == shown).collect();
            let names: Vec<String> =
                self.columns.iter().map(|column| column.kind.to_string()).collect();
            let mut head = vec!["attack"];
            head.extend(names.iter().map(String::as_str));
            let mut table = Table::markdown(&head);
            for row in &rows {
                table.row([std::slice::from_ref(&row.label), &row.cells[..]].concat());
            }
            let list: Vec<&Value> = rows.iter().map(|row| &row.json).collect();
            let (method, json) = (shown.method(run, rounds), json!({ name: list }));
            (!rows.is_empty()).then(|| Report { table, method, json, broken: Vec::new() })
        };
        tables.into_iter().filter_map(report).collect()
    }
}

/// Formats the combined values of all rounds of one program as one cell.
fn cell(shown: Shown, rounds: &[&[f64]]) -> String {
    let count = rounds.iter().map(|values| values.len()).min().unwrap_or(0);
    let parts = shown.measures().iter().take(count).enumerate().map(|(index, measure)| {
        let values = rounds.iter().map(|values| values[index]).filter(|value| !value.is_nan());
        let value = match measure {
            Measure::Rounds => Some(100.0 * values.sum::<f64>() / rounds.len() as f64),
            Measure::Ratio => Spread::of(values).map(|spread| 100.0 * spread.median),
            Measure::Number => Spread::of(values).map(|spread| spread.median),
        };
        value.map_or("–".to_owned(), |value| format!("{value:.0}"))
    });
    parts.collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_medians_of_shares_and_the_part_of_rounds_that_went_well() {
        let rounds: [&[f64]; 3] =
            [&[0.97, 1.0, 0.0, 0.5], &[0.99, 1.0, 1.0, 0.6], &[0.1, 1.0, 0.0, 0.4]];
        assert_eq!(cell(Shown::Slots, &rounds), "97 / 100 / 33 / 50");
    }

    #[test]
    fn a_percentile_that_nobody_has_is_a_dash() {
        assert_eq!(cell(Shown::Memory, &[&[0.0, 256.0, f64::NAN, 0.0]]), "0 / 256 / – / 0");
        assert_eq!(cell(Shown::Shares, &[&[0.25]]), "25");
    }

    #[test]
    fn a_program_that_is_not_installed_is_named_in_its_column() {
        let column = |kind, is_installed| Column { kind, is_wanted: true, is_installed };
        let mut results =
            Results::new(vec![column(PeerKind::Haproxy, false), column(PeerKind::Bywash, true)]);
        let trial = &super::super::trial::Attack::BlackHole.trials(1000)[0];
        results.add(trial, PeerKind::Bywash, &[0.5]);
        results.finish(trial);
        assert_eq!(results.rows[0].cells, ["not installed", "50"]);
    }
}
