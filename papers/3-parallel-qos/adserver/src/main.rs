//! The command-line program of the ad server, which can also test whether the roulette is fair.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use bywash_adserver::{AdServer, AdServerError, Fill, Options, Selection, roulette};
use bywash_site::Signals;
use clap::{Parser, ValueEnum};
use tokio::runtime::Builder;

/// An ad server with a fixed capacity, to be overloaded.
///
/// GET /ad?slots=N&concepts=A,B returns banners for a page. GET /click/TOKEN counts a click and
/// redirects. POST /concepts /publishers /slots /contracts sets the server up, GET /contracts/ID
/// and /publishers/ID report. GET /stats counts the outcomes of requests. GET /-/health says
/// whether the server is up.
#[derive(Debug, Parser)]
#[command(name = "bywash-adserver", version)]
struct Arguments {
    /// Address to listen on; with port 0 a free port
    #[arg(long, default_value = "127.0.0.1:3002")]
    listen: SocketAddr,

    /// Number of threads that select banners [default: one more than processors]
    #[arg(long)]
    threads: Option<u32>,

    /// Threads for one request of the high level [default: 6]; one of the low level has one thread
    #[arg(long, value_name = "THREADS")]
    high_threads: Option<u32>,

    /// Goal: mean time of the high level divided by that of the low level, as in 0.5
    #[arg(long, conflicts_with = "parity")]
    ratio: Option<f64>,

    /// Use the paper's method without levels: run this many pages at a time, first come first
    /// served, each with all threads of its level
    #[arg(long, value_name = "PAGES")]
    parity: Option<u32>,

    /// Number of worker threads for the admin API
    #[arg(long, default_value_t = 4)]
    clerks: usize,

    /// Maximum number of waiting requests for each level, and for the admin API; further ones get
    /// 503
    #[arg(long, default_value_t = 511)]
    backlog: usize,

    /// SQLite file; created if it is missing, and its contracts are kept
    #[arg(long, default_value = "adserver.db")]
    database: PathBuf,

    /// How to select banners: by the paper's scan, or by trees of weights
    #[arg(long, value_enum, default_value_t = SelectionArg::Wheels)]
    selection: SelectionArg,

    /// Key file of the gateway in front (its `levels.key_file`): trust the level that it signs
    #[arg(long, value_name = "FILE", conflicts_with = "level_parameter")]
    level_keys: Option<PathBuf>,

    /// Trust the level that a request names with type=0 (low) or type=1 (high); for the laboratory
    #[arg(long)]
    level_parameter: bool,

    /// Fill an empty database with generated contracts; leave any other as it is
    #[arg(long, value_name = "CONTRACTS,CONCEPTS,SEED")]
    fill: Option<Fill>,

    /// Test with this many selections whether the roulette is fair (a thousandth of them by scan),
    /// print the result, and exit
    #[arg(long, value_name = "DRAWS", num_args = 0..=1, default_missing_value = "10000000",
          value_parser = clap::value_parser!(u64).range(100_000..=1_000_000_000),
          conflicts_with_all = ["listen", "threads", "high_threads", "ratio", "parity", "clerks", "backlog", "database",
                                "selection", "level_keys", "level_parameter", "fill"])]
    roulette: Option<u64>,

    /// Seed of the roulette
    #[arg(long, default_value_t = 1, requires = "roulette")]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SelectionArg {
    Scan,
    Wheels,
}

/// The reason why the program failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    AdServer(#[from] AdServerError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error("cannot write: {0}")]
    Write(io::Error),
    #[error("the selections differ from those of a fair roulette")]
    Unfair,
    #[error("--high-threads has no effect if a page is one task: add --selection scan")]
    OneTask,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.roulette {
        Some(draws) => test_roulette(draws, arguments.seed),
        None if arguments.high_threads.is_some() && arguments.selection == SelectionArg::Wheels => {
            Err(Failure::OneTask)
        }
        None => run(arguments.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bywash-adserver: {failure}");
            ExitCode::FAILURE
        }
    }
}

impl From<Arguments> for Options {
    fn from(arguments: Arguments) -> Self {
        Self {
            listen: arguments.listen,
            database: arguments.database,
            threads: arguments.threads.unwrap_or(Self::default().threads),
            high_threads: arguments.high_threads.unwrap_or(Self::default().high_threads),
            ratio: arguments.ratio,
            parity: arguments.parity,
            workers: arguments.clerks,
            backlog: arguments.backlog,
            selection: match arguments.selection {
                SelectionArg::Scan => Selection::Scan,
                SelectionArg::Wheels => Selection::Wheels,
            },
            level_keys: arguments.level_keys,
            level_parameter: arguments.level_parameter,
            fill: arguments.fill,
        }
    }
}

fn test_roulette(draws: u64, seed: u64) -> Result<(), Failure> {
    let mut is_fair = true;
    for selection in [Selection::Wheels, Selection::Scan] {
        let trial = roulette(selection, draws, seed).ok_or(Failure::Unfair)?;
        writeln!(io::stdout(), "{trial}").map_err(Failure::Write)?;
        is_fair &= trial.is_fair();
    }
    if is_fair { Ok(()) } else { Err(Failure::Unfair) }
}

fn run(options: Options) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::Signals)?;
    let signals = Signals::caught(&runtime).map_err(Failure::Signals)?;
    let server = AdServer::start(options)?;
    // A failed write to stdout must not stop the server.
    let _ = writeln!(io::stdout(), "adserver listening on http://{}", server.address());
    runtime.block_on(signals.first());
    server.stop();
    Ok(())
}
