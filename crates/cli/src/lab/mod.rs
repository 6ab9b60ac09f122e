//! `bywash lab`: scenarios in virtual time and in real time, with one format for both results.

mod live;
mod sim;

use std::path::Path;

use bywash_report::{result_report, table};
use bywash_scenario::{RunResult, Scenario};
use serde_json::Value;

use crate::failure::Failure;
use crate::{print, print_json};

pub(crate) use live::{line, live};
pub(crate) use sim::sim;

pub(crate) fn read(path: &Path) -> Result<Scenario, Failure> {
    let wrong = |error| Failure::configuration(format!("bywash: {}: {error}", path.display()));
    Scenario::read(path).map_err(wrong)
}

/// Prints a result and writes its report, as asked.
fn deliver(result: &RunResult, json: bool, report: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = report {
        write_report(path, &result_report(result, &command(), environment()))?;
    }
    if json { print_json(&to_json(result)?) } else { print(&table::cells(result).to_string()) }
}

pub(crate) fn to_json(result: &RunResult) -> Result<Value, Failure> {
    serde_json::to_value(result).map_err(Failure::running)
}

pub(crate) fn write_report(path: &Path, report: &bywash_report::Report) -> Result<(), Failure> {
    let wrong = |error| Failure::running(format!("cannot write {}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    bywash_report::write(path, report).map_err(wrong)?;
    eprintln!("report: {}", path.display());
    Ok(())
}

/// The command that was given, for whoever wants to repeat it.
pub(crate) fn command() -> String {
    let words = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    format!("bywash {words}")
}

/// What it was run with.
pub(crate) fn environment() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let entry = |name: &str, value: String| (name.to_owned(), value);
    vec![
        entry("bywash", env!("CARGO_PKG_VERSION").to_owned()),
        entry("cores", cores.to_string()),
        entry("kernel", kernel.trim().to_owned()),
    ]
}
