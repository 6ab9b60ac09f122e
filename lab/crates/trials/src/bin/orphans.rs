//! Measures what happens after a client has left: how soon its query is cancelled, whether another
//! request's query is ever cancelled, and the cost of a storm of departures.
//!
//!     scripts/with-databases postgres mariadb -- target/release/orphans
//!
//! The exit code is 99 if the stop daemon cancelled the query of a wrong request although the
//! connection was leased.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use bywash_harness::machine::Machine;
use bywash_peer::child_guard;
use bywash_trials::orphans::database::DatabaseKind;
use bywash_trials::orphans::victims::Attribution;
use bywash_trials::orphans::{latency, storm, victims};
use clap::{Parser, ValueEnum};
use serde_json::json;

const PROMISE_NOT_KEPT: u8 = 99;

/// Measure what happens to database queries whose clients have left
#[derive(Debug, Parser)]
struct Options {
    /// Measure only this
    #[arg(value_enum)]
    what: Option<What>,
    /// The bywash program
    #[arg(long, default_value = "target/release/bywash")]
    program: PathBuf,
    /// Number of clients that leave, for each way
    #[arg(long, default_value_t = 1000)]
    rounds: usize,
    /// Number of rounds of two requests on one connection
    #[arg(long, default_value_t = 10_000)]
    victims: usize,
    /// Numbers of connections; the rounds run once for each, spread evenly
    #[arg(long, value_delimiter = ',', default_value = "1,4",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=32))]
    connections: Vec<usize>,
    /// Number of connections that clients reset within a second
    #[arg(long, default_value_t = 5000)]
    resets: usize,
    /// Also write the results into this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Time from the client's close to the cancelled query
    Latency,
    /// Queries of other requests that are cancelled
    Victims,
    /// Thousands of resets within a second
    Storm,
}

fn main() -> ExitCode {
    match child_guard::start().and_then(|()| run(&Options::parse())) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            println!(
                "the daemon cancelled {wrong} queries of other requests, although their connection \
                 was leased"
            );
            ExitCode::from(PROMISE_NOT_KEPT)
        }
        Err(error) => {
            eprintln!("orphans: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the measurements. Returns how often the daemon cancelled the query of a wrong request
/// although the connection was leased.
fn run(options: &Options) -> io::Result<usize> {
    let there: Vec<DatabaseKind> =
        DatabaseKind::ALL.into_iter().filter(|kind| kind.address().is_some()).collect();
    if there.is_empty() {
        return Err(io::Error::other(
            "no database: run scripts/with-databases postgres mariadb -- target/release/orphans",
        ));
    }
    println!("{}", Machine::here().line());
    let wants = |what| options.what.is_none_or(|only| only == what);
    let (mut wrong, mut results) = (0, serde_json::Map::new());
    if wants(What::Latency) {
        let (mut table, mut all) = (latency::head(), Vec::new());
        for kind in &there {
            all.extend(latency::measure(&options.program, *kind, options.rounds, &mut table)?);
        }
        println!(
            "\nFrom the client's close at the gateway until the application's query returns as \
             cancelled\n{table}"
        );
        results.insert("latency".into(), json!(all));
    }
    if wants(What::Victims) {
        let (mut table, mut all) = (victims::head(), Vec::new());
        for kind in &there {
            for (attribution, connections) in options
                .connections
                .iter()
                .flat_map(|&n| [(Attribution::Lease, n), (Attribution::QueryTag, n)])
            {
                let (count, result) = victims::measure(
                    &options.program,
                    *kind,
                    attribution,
                    options.victims,
                    connections,
                    &mut table,
                )?;
                wrong += if attribution == Attribution::Lease { count.wrong } else { 0 };
                all.push(result);
            }
        }
        println!(
            "\nTwo requests one after the other on a connection, with stops of the first at any \
             moment\n{table}"
        );
        results.insert("victims".into(), json!(all));
    }
    if wants(What::Storm) {
        let (mut table, mut all) = (storm::head(), Vec::new());
        for kind in &there {
            all.push(storm::measure(&options.program, *kind, options.resets, &mut table)?);
        }
        println!(
            "\n{} clients reset their connections within a second; at most 100 statements per \
             second\n{table}",
            options.resets
        );
        results.insert("storm".into(), json!(all));
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&results)? + "\n")?;
    }
    Ok(wrong)
}
