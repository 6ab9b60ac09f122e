//! Tests whether gateway and origin understand messages in the same way.
//!
//! The program sends the corpus and mutations of it through bywash to a recorder. It replays the
//! forwarded bytes to real servers, and prints all disagreements.
//!
//! The exit code is 1 if there is any disagreement, or if a case is not handled as the corpus
//! expects.

use bywash_harness::table::Table;
use bywash_trials::differential::corpus;
use bywash_trials::differential::front::{Front, Peer};
use bywash_trials::differential::messages::MessagePlan;
use bywash_trials::differential::origin::{ORIGINS, Origin, OriginPaths};
use bywash_trials::differential::parties;
use bywash_trials::differential::reflector::Reflector;
use bywash_trials::differential::results::{OriginTally, Results, Stage, Tally};
use clap::Parser;
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const DISAGREE: u8 = 1;
const BROKEN: u8 = 2;

/// Compare what a gateway forwards with what real servers understand
#[derive(Debug, Parser)]
struct Options {
    /// The bywash program
    #[arg(long, default_value = "target/release/bywash")]
    gateway: PathBuf,
    /// Test this program instead of bywash
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// Use only these origins, separated by commas; `none`: only the recorder
    #[arg(long, value_delimiter = ',')]
    origins: Vec<String>,
    /// Folder into which scripts/origins installed the origins
    #[arg(long, default_value = "out/origins")]
    installed: PathBuf,
    /// Folder of the corpus
    #[arg(long, default_value = "lab/messages")]
    corpus: PathBuf,
    /// Send only cases whose class or name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Number of mutations of each case
    #[arg(long, default_value_t = 10)]
    mutations: usize,
    /// Seed of the mutations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of gateways that work in parallel
    #[arg(long, default_value_t = 2)]
    lanes: usize,
    /// Minutes after which the program leaves out the remaining messages
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Number of findings to print
    #[arg(long, default_value_t = 60)]
    show: usize,
    /// Also print the table of docs/figures/hostile-clients.md
    #[arg(long)]
    figures: bool,
    /// Also write the results into this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DISAGREE),
        Err(e) => {
            eprintln!("differential: {e}");
            ExitCode::from(BROKEN)
        }
    }
}

/// Runs the selected parts and returns whether all programs agree.
fn run(options: &Options) -> io::Result<bool> {
    let front = match options.peer {
        Some(peer) => Front::Peer(peer),
        None => Front::Gateway(fs::canonicalize(&options.gateway)?),
    };
    let mut cases = corpus::load(&options.corpus)?;
    if let Some(only) = &options.only {
        cases.retain(|case| case.class.contains(only) || case.name.contains(only));
    }
    let reflector = Reflector::open()?;
    let sources = fs::canonicalize(Path::new("lab/origins"))?;
    let installed = fs::canonicalize(&options.installed).unwrap_or(options.installed.clone());
    let paths = OriginPaths { sources, installed, backend: reflector.port() };
    let origins = origins(options, &paths)?;
    let until = Instant::now() + Duration::from_secs(options.minutes.saturating_mul(60));
    let plan = MessagePlan {
        front: &front,
        cases: &cases,
        mutations: options.mutations,
        seed: options.seed,
        lanes: options.lanes,
        until,
    };
    let mut gathered = plan.fire()?;
    let mut results = std::mem::take(&mut gathered.results);
    for (origin, version) in &origins {
        results.join(parties::run_origin(origin, &paths, version, &front, &gathered, until)?);
    }
    print(&front, &results, options.show);
    if options.figures {
        println!("\n{}", figures(&results));
    }
    if let Some(file) = &options.json {
        let all = json!({
            "front": front.to_string(), "mutations": options.mutations, "seed": options.seed,
            "results": results.json(),
        });
        fs::write(file, format!("{all:#}\n"))?;
    }
    Ok(results.is_clean())
}

/// Returns the selected origins that are installed, each with its version. Fails if a name is
/// unknown.
fn origins<'a>(options: &Options, paths: &OriginPaths) -> io::Result<Vec<(&'a Origin, String)>> {
    static KNOWN: [Origin; 13] = ORIGINS;
    let asked = |origin: &&Origin| options.origins.iter().any(|name| name == origin.name);
    let known = |name: &String| name == "none" || KNOWN.iter().any(|origin| origin.name == name);
    if let Some(unknown) = options.origins.iter().find(|name| !known(name)) {
        return Err(io::Error::other(format!("no origin is called {unknown}")));
    }
    let mut present = Vec::new();
    for origin in KNOWN.iter().filter(|origin| options.origins.is_empty() || asked(origin)) {
        match origin.version(paths) {
            Some(version) => present.push((origin, version)),
            None => eprintln!(
                "{}: left out, because it is not installed (run scripts/origins)",
                origin.name
            ),
        }
    }
    Ok(present)
}

fn print(front: &Front, results: &Results, show: usize) {
    let count =
        |pick: fn(&Stage) -> bool| results.findings.iter().filter(|f| pick(&f.stage)).count();
    println!("\n{}", classes(results));
    if !results.origins.is_empty() {
        println!("{}", parties_table(results));
    }
    for finding in results.findings.iter().filter(|f| f.stage != Stage::Beyond).take(show) {
        println!("{} [{}]: {}", finding.source, finding.stage, finding.what);
    }
    println!(
        "\n{front}: {} expectations not met, {} faults in what it forwards, {} disagreements of \
         origins",
        results.classes.values().map(|tally| tally.unmet).sum::<usize>(),
        count(|stage| *stage == Stage::Forwarded),
        count(|stage| matches!(stage, Stage::Origin(_) | Stage::Live(_))),
    );
    if results.left_out > 0 {
        println!("{} mutations were left out: the time limit was reached", results.left_out);
    }
}

/// Returns a Markdown table of the sent messages, and of how each origin understood the forwarded
/// ones.
fn figures(results: &Results) -> String {
    let sum = |pick: fn(&Tally) -> usize| results.classes.values().map(pick).sum::<usize>();
    let rows = results.origins.iter().map(|tally| {
        let OriginTally { name, version, streams, agreed, refused, live, faults, .. } = tally;
        format!("| {name} | {version} | {streams} | {agreed} | {refused} | {live} | {faults} |\n")
    });
    format!(
        "{} cases in {} classes, {} refused; {} mutations, {} refused.\n\n\
         | origin | version | connections | requests understood alike | refused by the origin | \
         live cases | disagreements |\n|---|---|---|---|---|---|---|\n{}",
        sum(|tally| tally.cases),
        results.classes.len(),
        sum(|tally| tally.refused),
        sum(|tally| tally.mutations),
        sum(|tally| tally.mutations_refused),
        rows.collect::<String>(),
    )
}

fn classes(results: &Results) -> Table {
    let head = ["class", "cases", "refused", "unmet", "mutations", "refused", "beyond", "faulty"];
    let mut table = Table::new(1, &head);
    for (class, tally) in &results.classes {
        let numbers = [
            tally.cases,
            tally.refused,
            tally.unmet,
            tally.mutations,
            tally.mutations_refused,
            tally.beyond,
            tally.faulty,
        ];
        let cells = numbers.iter().map(ToString::to_string);
        table.row(std::iter::once(class.clone()).chain(cells).collect());
    }
    table
}

fn parties_table(results: &Results) -> Table {
    let head = [
        "origin",
        "version",
        "connections",
        "agreed",
        "refused",
        "own",
        "beyond",
        "live",
        "disagree",
        "left out",
    ];
    let mut table = Table::new(2, &head);
    for tally in &results.origins {
        let numbers = [
            tally.streams,
            tally.agreed,
            tally.refused,
            tally.own,
            tally.beyond,
            tally.live,
            tally.faults,
            tally.left_out,
        ];
        let words = [tally.name.clone(), tally.version.clone()];
        table.row(words.into_iter().chain(numbers.iter().map(ToString::to_string)).collect());
    }
    table
}
