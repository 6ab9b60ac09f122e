//! `bywash lab`: scenarios in virtual time and in real time, with one format for the results of
//! both.
#![forbid(unsafe_code)]

mod args;
mod classes;
mod compare;
mod demo;
mod elephants;
mod fleet;
mod learn;
mod limits;
mod live;
mod narrowed;
mod paper;
mod peers;
mod replay;
mod shop;
mod sim;
mod sweep;

use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::{print, print_json, say, to_json};
use bywash_report::{result_report, table};
use bywash_scenario::{RunResult, Scenario, ScenarioError};
use bywash_terminal::text::{printable, start};
use indicatif::{ProgressBar, ProgressStyle};

use args::LabCommand;
pub use args::{Demo, Lab};
pub use demo::demo;

/// Runs a command of `bywash lab`.
///
/// # Errors
/// Returns the failure of the command, with its exit code.
pub fn lab(args: &Lab) -> Result<(), Failure> {
    match &args.command {
        LabCommand::Sim(args) => sim::sim(args),
        LabCommand::Learn(args) => learn::learn(args),
        LabCommand::Limits(args) => limits::limits(args),
        LabCommand::Elephants(args) => elephants::elephants(args),
        LabCommand::Fleet(args) => fleet::fleet(args),
        LabCommand::Run(args) => live::live(args),
        LabCommand::Compare(args) => compare::compare(args),
        LabCommand::Sweep(args) => sweep::sweep(args),
        LabCommand::Peers(args) => peers::peers(args),
        LabCommand::Replay(args) => replay::replay(args),
        LabCommand::Paper(args) => paper::paper(args),
    }
}

fn read(path: &Path) -> Result<Scenario, Failure> {
    Scenario::read(path).map_err(|error| match error {
        // The error names the file that cannot be read. It may be the file of arrival times instead
        // of the scenario file.
        ScenarioError::Unreadable { .. } => Failure::configuration(format!("bywash: {error}")),
        _ => invalid_file(path, &error.to_string()),
    })
}

/// Returns the failure for an invalid scenario file or result file.
fn invalid_file(path: &Path, why: &str) -> Failure {
    Failure::configuration(format!("bywash: {}: {}", path.display(), presentable(why)))
}

/// Makes a text that may quote a file [`printable`], line by line, and cuts long lines. bywash's
/// own messages, which may list names, are shorter than the length at which a line is cut.
fn presentable(text: &str) -> String {
    const QUOTED: usize = 100;
    const SAID: usize = 500;
    let is_quoted = |line: &str| {
        line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with('|')
    };
    let line = |line: &str| {
        let most = if is_quoted(line) { QUOTED } else { SAID };
        let kept = start(line, most);
        printable(kept) + if kept.len() < line.len() { "…" } else { "" }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Prints a result as a table or as JSON. Writes a report if a path is given.
fn deliver(result: &RunResult, json: bool, report: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = report {
        write_report(path, &result_report(result, &command(), environment()))?;
    }
    if json { print_json(&to_json(result)?) } else { print(&table::cells(result).to_string()) }
}

/// Fails if a report cannot be written to `path`. Commands call it before a long run.
fn prepare_report(path: &Path) -> Result<(), Failure> {
    let words = |why: &str| format!("--report {}: {why}", path.display());
    if path.is_dir() || path.file_name().is_none() {
        return Err(Failure::usage(words("this is a folder; name a file in it")));
    }
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.map_err(|error| Failure::running(words(&format!("cannot create its folder: {error}"))))
}

/// Creates the folder for figures. Commands call it before a long run.
fn prepare_figures(folder: &Path) -> Result<(), Failure> {
    let words =
        |error| format!("--figures {}: cannot create the folder: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(|error| Failure::usage(words(error)))
}

fn write_report(path: &Path, report: &bywash_report::Report) -> Result<(), Failure> {
    let failure = |error| Failure::running(format!("cannot write {}: {error}", path.display()));
    bywash_report::write(path, report).map_err(failure)?;
    say(format!("report: {}", path.display()));
    Ok(())
}

/// Writes each figure of a report into `folder` as an SVG file.
fn write_figures(folder: &Path, report: &bywash_report::Report) -> Result<(), Failure> {
    let failure = |error| {
        Failure::running(format!("cannot write figures into {}: {error}", folder.display()))
    };
    for path in bywash_report::write_figures(folder, report).map_err(failure)? {
        say(format!("figure: {}", path.display()));
    }
    Ok(())
}

/// Returns the command line of this process, quoted for a shell, for a reader who wants to repeat
/// it.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    words.fold("bywash".to_owned(), |command, word| command + " " + &word)
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the version of bywash and the machine, as pairs of name and value, for a report.
fn environment() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let entry = |name: &str, value: String| (name.to_owned(), value);
    vec![
        entry("bywash", env!("CARGO_PKG_VERSION").to_owned()),
        entry("cores", cores.to_string()),
        entry("kernel", kernel.trim().to_owned()),
    ]
}

/// Makes a progress bar on standard error, which is hidden without a terminal. The returned
/// function takes the number of finished runs and the number of all runs.
fn progress_bar() -> (ProgressBar, impl Fn(usize, usize) + Sync) {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left");
    let bar = ProgressBar::new(0);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    let shared = bar.clone();
    let progress = move |done: usize, all: usize| {
        shared.set_length(all as u64);
        shared.set_position(done as u64);
    };
    (bar, progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("--rho=1.4,5"), "--rho=1.4,5");
        assert_eq!(quoted("my scenario.toml"), "'my scenario.toml'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn what_quotes_a_file_is_cut_and_harmless() {
        assert_eq!(presentable("a\x1b[2J\nb"), "a\u{fffd}[2J\nb");
        let whole = "x".repeat(500);
        assert_eq!(presentable(&whole), whole);
        assert_eq!(presentable(&"x".repeat(5000)), whole + "…");
        let quoted = format!("12 | {}", "x".repeat(5000));
        assert_eq!(presentable(&quoted).chars().count(), 101);
    }
}
