//! `attacks` measures the damage that hostile clients do to honest ones, with bywash, HAProxy and
//! nginx in the same run. All three have the configuration of an administrator who expects hostile
//! clients.
//!
//! | file | content |
//! |---|---|
//! | `trial.rs` | the attacks and their sizes |
//! | `texts.rs`, `target.rs`, `origin.rs` | the three programs and the application behind them |
//! | `attacker.rs`, `streams.rs`, `pool.rs` | hostile connections: one, one of HTTP/2, many |
//! | `line.rs` | the network that trials run in |
//! | `honest.rs` | demanding honest clients that must still be served |
//! | `pressure.rs` | attacks on the slots |
//! | `memory.rs`, `connection_limit.rs`, `sessions.rs` | one attack each |
//! | `black_hole.rs`, `watchers.rs` | one attack each |
//! | `results.rs` | medians and tables |

mod attacker;
mod black_hole;
mod connection_limit;
mod honest;
mod line;
mod memory;
mod origin;
mod pool;
mod pressure;
mod results;
mod sessions;
mod streams;
mod target;
mod texts;
mod trial;
mod watchers;

use results::{Column, Results};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bywash_harness::peer::PeerKind;
use bywash_harness::report::{Bench, Common, not_available};
use bywash_harness::sys;

use trial::{Attack, BESIDE, Run};

/// The programs under test, in the order of the columns.
const PROGRAMS: [PeerKind; 3] = [PeerKind::Haproxy, PeerKind::Nginx, PeerKind::Bywash];
/// Number of descriptors that a program needs in addition to those of its connections.
const SPARE: u64 = 200;

/// Attacks, programs, duration and rounds
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Run only this attack; may be repeated
    #[arg(long, value_enum)]
    attack: Vec<Attack>,
    /// Run only rows whose names contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    row: String,
    /// Attack only this program; may be repeated
    #[arg(long, value_enum)]
    only: Vec<PeerKind>,
    /// Number of rounds; the tables show medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Seconds that each attack lasts
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=60))]
    seconds: u64,
    /// Connections of the largest attacks; fewer if the descriptors do not suffice
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..=100_000))]
    connections: u32,
    /// File with keys to add to the configuration of bywash, or to replace in it
    #[arg(long, value_name = "FILE")]
    config_extra: Option<PathBuf>,
}

/// Runs all selected trials and publishes the reports.
///
/// # Errors
///
/// Fails if the file of further keys cannot be read, or if bywash or all selected programs cannot
/// run.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    let extra = extra(options)?;
    let limit = sys::raise_descriptor_limit()?;
    let many = connections(options.connections, limit)?;
    if many < options.connections as usize {
        println!(
            "at most {many} hostile connections, because a process may have {limit} descriptors"
        );
    }
    let wanted: Vec<PeerKind> =
        PROGRAMS.into_iter().filter(|kind| is_wanted(options, *kind)).collect();
    let bench = Bench::set(&wanted, &options.common.programs);
    let present: Vec<PeerKind> = bench.kinds().collect();
    if wanted.contains(&PeerKind::Bywash) && !present.contains(&PeerKind::Bywash) {
        let program = options.common.programs.bywash.display();
        let why = format!("{program} does not run: name the bywash program with --bywash FILE");
        return Err(io::Error::other(why));
    }
    if present.is_empty() {
        return Err(io::Error::other("none of the programs named by --only is installed"));
    }
    let columns: Vec<Column> = PROGRAMS
        .into_iter()
        .map(|kind| Column {
            kind,
            is_wanted: wanted.contains(&kind),
            is_installed: present.contains(&kind),
        })
        .collect();
    let length = Duration::from_secs(options.seconds);
    let run = Run { programs: &options.common.programs, length, many, extra: &extra };
    let network = line::enter();
    if let Err(e) = &network {
        not_available(
            "the slow line of the reader; without it the results of slow-read mean little",
            &e.to_string(),
        );
    }
    let results = measure(options, &run, columns);
    bench.publish(&results.reports(&run, options.rounds), &options.common)
}

fn measure(options: &Options, run: &Run<'_>, columns: Vec<Column>) -> Results {
    let attacks = if options.attack.is_empty() { &Attack::ALL[..] } else { &options.attack };
    let trials = attacks.iter().flat_map(|attack| attack.trials(run.many));
    let trials = trials.filter(|trial| trial.label.contains(&options.row));
    let mut results = Results::new(columns);
    for trial in trials {
        for round in 0..options.rounds {
            for kind in results.present().filter(|kind| trial.applies_to(*kind)).collect::<Vec<_>>()
            {
                eprintln!("{}, {kind}, round {}", trial.label, round + 1);
                match trial.measure(kind, run) {
                    Ok(values) => results.add(&trial, kind, &values),
                    Err(e) => not_available(&format!("{}, {kind}", trial.label), &e.to_string()),
                }
            }
        }
        results.finish(&trial);
    }
    results
}

fn is_wanted(options: &Options, kind: PeerKind) -> bool {
    options.only.is_empty() || options.only.contains(&kind)
}

/// Returns the possible number of hostile connections, at most `wanted`, with a limit of
/// `descriptors` open descriptors. HAProxy needs descriptors for both sides of every connection
/// that it may accept, and all programs get the same number of connections. Fails if too few are
/// possible.
fn connections(wanted: u32, descriptors: u64) -> io::Result<usize> {
    let most = (descriptors.saturating_sub(SPARE) / 2).saturating_sub(BESIDE as u64);
    if most < 1000 {
        let why = format!("{descriptors} descriptors are too few: run `ulimit -n 10000`");
        return Err(io::Error::other(why));
    }
    Ok(u64::from(wanted).min(most) as usize)
}

fn extra(options: &Options) -> io::Result<String> {
    let Some(file) = &options.config_extra else { return Ok(String::new()) };
    let words = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", file.display()));
    fs::read_to_string(file).map_err(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        Line::try_parse_from([&["attacks"], words].concat()).map(|line| line.options)
    }

    #[test]
    fn options_choose_attacks_and_programs_and_are_bounded() {
        let options = parse(&["--attack", "slow-read", "--only", "haproxy"]).unwrap();
        assert_eq!(options.attack, [Attack::SlowRead]);
        assert!(is_wanted(&options, PeerKind::Haproxy) && !is_wanted(&options, PeerKind::Bywash));
        assert!(parse(&["--seconds", "61"]).is_err() && parse(&["--rounds", "0"]).is_err());
        assert!(parse(&["--attack", "nonsense"]).is_err());
    }

    #[test]
    fn descriptors_bound_the_connections() {
        assert_eq!(connections(10_000, 20_000).unwrap(), 8900);
        assert_eq!(connections(2000, 1_000_000).unwrap(), 2000);
        assert!(connections(10_000, 1024).unwrap_err().to_string().contains("too few"));
    }

    #[test]
    fn a_program_or_a_file_that_is_missing_is_named_in_one_line() {
        let error = |words: &[&str]| run(&parse(words).unwrap()).unwrap_err().to_string();
        let missing = error(&["--bywash", "/no/such/bywash"]);
        assert!(missing.contains("/no/such/bywash does not run") && !missing.contains('\n'));
        assert!(error(&["--config-extra", "/no/such/file"]).starts_with("/no/such/file: "));
        assert!(error(&["--only", "envoy"]).contains("none of the programs"));
    }
}
