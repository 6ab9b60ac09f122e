//! How every measurement ends: a table, the method, the command line that made it, and a file.

use crate::machine::{self, Machine};
use crate::peer::{Kind, Programs};
use crate::table::Table;
use serde_json::{Map, Value, json};
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// The product did not keep a promise that was measured.
const PROMISE_NOT_KEPT: u8 = 99;

/// What every measurement is told.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Paths of the programs under test
    #[command(flatten)]
    pub programs: Programs,
    /// Also write the results into this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What a measurement comes to.
#[derive(Debug)]
pub struct Report {
    /// The figures.
    pub table: Table,
    /// What the figures are of.
    pub method: String,
    /// The figures for a file: an object, whose names no other report of the run has.
    pub json: Value,
    /// Promises that were measured and not kept.
    pub broken: Vec<String>,
}

/// The programs that are installed, and on what they run.
#[derive(Debug)]
pub struct Bench {
    machine: Machine,
    present: Vec<(Kind, String)>,
}

impl Bench {
    /// Looks which of `kinds` are installed, and says so.
    pub fn set(kinds: &[Kind], programs: &Programs) -> Self {
        let machine = Machine::here();
        println!("{}", machine.line());
        Self { machine, present: machine::installed(kinds, programs) }
    }

    /// The programs that are installed.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.present.iter().map(|(kind, _)| *kind)
    }

    /// Prints `reports`, writes their file, and gives the exit code that they ask for.
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
        let version = |(kind, version): &(Kind, String)| (kind.to_string(), json!(version));
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

/// The command line that makes this table.
fn command() -> String {
    env::args().collect::<Vec<_>>().join(" ")
}

/// Says that a part of a measurement is left out, and why: the beginning of what was said about it.
pub fn not_available(what: &str, why: &str) {
    let lines: Vec<&str> = why.lines().map(str::trim).take(3).collect();
    println!("not available: {what}: {}", lines.join(" "));
}
