//! The end of every measurement: a table, the method, the command line, and a JSON file.

use crate::machine::{self, Machine};
use crate::peer::{PeerKind, Programs};
use crate::table::Table;
use serde_json::{Map, Value, json};
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code if bywash missed a promise that was measured.
const PROMISE_NOT_KEPT: u8 = 99;

/// Options of every measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Paths of the programs under test
    #[command(flatten)]
    pub programs: Programs,
    /// Also write the results into this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The result of a measurement, which is to be printed.
#[derive(Debug)]
pub struct Report {
    /// The table with the figures.
    pub table: Table,
    /// The method by which the figures were measured, as text for the reader.
    pub method: String,
    /// The figures for the JSON file, as an object. The names of its members must be unique among
    /// the reports of a run.
    pub json: Value,
    /// Descriptions of the promises that were measured and missed.
    pub broken: Vec<String>,
}

/// The installed programs and the machine of a measurement.
#[derive(Debug)]
pub struct Bench {
    machine: Machine,
    present: Vec<(PeerKind, String)>,
}

impl Bench {
    /// Finds which programs of `kinds` are installed, and prints the version of each.
    pub fn set(kinds: &[PeerKind], programs: &Programs) -> Self {
        let machine = Machine::here();
        println!("{}", machine.line());
        Self { machine, present: machine::installed(kinds, programs) }
    }

    /// Returns the kinds of the installed programs.
    pub fn kinds(&self) -> impl Iterator<Item = PeerKind> {
        self.present.iter().map(|(kind, _)| *kind)
    }

    /// Prints `reports`, writes the JSON file, and returns the exit code. The exit code is 99 if
    /// any promise was missed.
    pub fn publish(&self, reports: &[Report], common: &Common) -> io::Result<ExitCode> {
        for report in reports {
            println!("\n{}\n{}", report.table, report.method);
        }
        println!("{}", command());
        let broken: Vec<&String> = reports.iter().flat_map(|report| &report.broken).collect();
        for promise in &broken {
            println!("not kept: {promise}");
        }
        if let Some(file) = &common.json {
            fs::write(file, format!("{:#}\n", self.document(reports, &broken)))?;
        }
        Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PROMISE_NOT_KEPT) })
    }

    fn document(&self, reports: &[Report], broken: &[&String]) -> Value {
        let version = |(kind, version): &(PeerKind, String)| (kind.to_string(), json!(version));
        let versions: Map<String, Value> = self.present.iter().map(version).collect();
        let mut whole = json!({
            "command": command(), "machine": self.machine.json(), "versions": versions,
            "not_kept": broken,
        });
        for figures in reports.iter().filter_map(|report| report.json.as_object()) {
            for (name, value) in figures {
                whole[name] = value.clone();
            }
        }
        whole
    }
}

/// Returns the command line of this process, for the report.
fn command() -> String {
    env::args().collect::<Vec<_>>().join(" ")
}

/// Prints that the part `what` of a measurement is omitted, with the first lines of the reason
/// `why`.
pub fn not_available(what: &str, why: &str) {
    let lines: Vec<&str> = why.lines().map(str::trim).take(3).collect();
    println!("not available: {what}: {}", lines.join(" "));
}
