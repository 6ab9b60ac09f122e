//! Measures whether ants (small responses) wait behind elephants (large ones) on a full line, and
//! the cost of each way to prevent it.
//!
//! The program needs root, `ip` and `tc`, and a kernel with HTB and TBF. Everything runs in
//! separate network namespaces.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bywash_bench::lanes::{self, Load, Rates, Seen, ShapingMethod};
use bywash_harness::machine::Machine;
use bywash_harness::stats::{Spread, percentile};
use bywash_harness::table::Table;
use bywash_peer::child_guard;
use bywash_shaper::BitRate;
use clap::Parser;

/// Measure ants while elephants fill the line
#[derive(Debug, Parser)]
struct Options {
    /// Number of runs of each throttling method, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds during which ants arrive in each run
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Rate of the line
    #[arg(long, default_value = "50mbit")]
    line: BitRate,
    /// Queue of the line in bytes; the default is 100 ms of the default rate
    #[arg(long, default_value_t = 625_000)]
    buffer: u32,
    /// Maximum rate of the server's device, if it has lanes
    #[arg(long, default_value = "48mbit")]
    total: BitRate,
    /// Guaranteed rate of all elephants together, if they have a lane
    #[arg(long, default_value = "2mbit")]
    rate: BitRate,
    /// Maximum rate of all elephants together, by a lane or a bucket
    #[arg(long, default_value = "16mbit")]
    ceiling: BitRate,
    /// Pacing rate of each elephant's connection
    #[arg(long, default_value = "2mbit")]
    pace: BitRate,
    /// Use this `bywash` program as the server instead of plain sockets; omits the runs with TCP
    /// pacing, which the gateway does not use
    #[arg(long, value_name = "PROGRAM")]
    gateway: Option<PathBuf>,
}

const ELEPHANTS: usize = 8;
const ANTS: u32 = 40;

fn main() -> ExitCode {
    match child_guard::start().and_then(|()| run(&Options::parse())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lanes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    let load = Load {
        line: options.line,
        buffer: options.buffer,
        elephants: ELEPHANTS,
        elephant_bytes: 500_000,
        ants: ANTS,
        ant_bytes: 20_000,
        length: Duration::from_secs(options.seconds),
    };
    let mut methods = vec![
        ("no elephants", ShapingMethod::NoElephants),
        ("unshaped", ShapingMethod::Unshaped),
        ("lane", ShapingMethod::Lane(options.ceiling)),
        ("lane, no ceiling", ShapingMethod::Lane(options.total)),
        ("pacing", ShapingMethod::Pacing(options.pace)),
        ("bucket", ShapingMethod::Bucket(options.ceiling)),
    ];
    let rates = Rates { total: options.total, rate: options.rate };
    let program = options.gateway.as_deref();
    if program.is_some() {
        methods.retain(|(_, method)| !matches!(method, ShapingMethod::Pacing(_)));
    }
    let mut runs = vec![(Vec::new(), Vec::new()); methods.len()];
    for _ in 0..options.rounds {
        for ((_, method), (runs, after)) in methods.iter().zip(&mut runs) {
            runs.push(lanes::run(*method, &load, rates, program)?);
            if *method != ShapingMethod::NoElephants {
                after.extend(lanes::after(*method, &load, rates, program)?);
            }
        }
    }
    println!("{}", Machine::here().line());
    println!(
        "{ELEPHANTS} elephants of 500 kB in a loop, {ANTS} ants of 20 kB per second, on a line of \
         {} with a queue of {} bytes; medians of {} runs of {} s [min–max]\n",
        options.line, options.buffer, options.rounds, options.seconds
    );
    println!("{}", table(&methods, &runs));
    Ok(())
}

/// Formats the results, one row for each method. The last column has the response times of ants
/// that follow an elephant on the same connection, with no other traffic.
fn table(methods: &[(&str, ShapingMethod)], runs: &[(Vec<Seen>, Vec<f64>)]) -> Table {
    let head =
        ["way", "ants p50 ms", "ants p99 ms", "ants lost", "elephants Mbit/s", "ant after one ms"];
    let mut table = Table::new(1, &head);
    for ((name, _), (runs, after)) in methods.iter().zip(runs) {
        let show = |of: &dyn Fn(&Seen) -> Option<f64>, decimals| {
            let spread = Spread::of(runs.iter().filter_map(of));
            spread.map_or("-".to_owned(), |spread| spread.show(decimals))
        };
        table.row(vec![
            (*name).to_owned(),
            show(&|seen| percentile(&seen.ants, 0.5), 1),
            show(&|seen| percentile(&seen.ants, 0.99), 1),
            runs.iter().map(|seen| seen.failed).sum::<usize>().to_string(),
            show(&|seen| Some(seen.elephants), 1),
            Spread::of(after.iter().copied()).map_or("-".to_owned(), |after| after.show(1)),
        ]);
    }
    table
}
