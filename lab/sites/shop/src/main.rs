//! The shop as a separate program.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bywash_shop::{Burn, MAX_DEMAND, Options, Shop, ShopError, Stage};
use bywash_site::Signals;
use clap::Parser;
use tokio::runtime::Builder;

/// A small shop with a fixed capacity, to be overloaded.
///
/// It serves the eight stages of a visit: GET / /browse /search?q= /details?id= and POST /login
/// /shipping /payment /confirm. A confirmed order is a committed row in the database. GET /-/stats
/// counts the outcomes of requests. GET /-/health says whether the shop is up.
///
/// A request may set its service demand in microseconds in the header shop-demand-us, and mark
/// the order that it places with the header shop-order-tag.
#[derive(Debug, Parser)]
#[command(name = "bywash-shop", version)]
struct Arguments {
    /// Address to listen on; with port 0 a free port
    #[arg(long, default_value = "127.0.0.1:3000")]
    listen: SocketAddr,

    /// Requests that run at a time
    #[arg(long, default_value_t = 8)]
    workers: usize,

    /// Requests that may wait for a worker; further ones get 503
    #[arg(long, default_value_t = 511)]
    backlog: usize,

    /// SQLite file; created if it is missing, and its orders are kept
    #[arg(long, default_value = "shop.db")]
    database: PathBuf,

    /// Service demand of a request that sets none, in milliseconds
    #[arg(long, value_name = "MS", default_value = "20", value_parser = milliseconds)]
    demand_ms: Duration,

    /// Stop working for clients that have left
    #[arg(long)]
    notice_close: bool,

    /// Spend the demand as CPU time instead of waiting
    #[arg(long)]
    cpu: bool,
}

/// The reason why the program failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Shop(#[from] ShopError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

fn main() -> ExitCode {
    match run(Arguments::parse().into()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bywash-shop: {failure}");
            ExitCode::FAILURE
        }
    }
}

impl From<Arguments> for Options {
    fn from(arguments: Arguments) -> Self {
        Self {
            listen: arguments.listen,
            database: arguments.database,
            workers: arguments.workers,
            backlog: arguments.backlog,
            notice_close: arguments.notice_close,
            burn: if arguments.cpu { Burn::Cpu } else { Burn::Timer },
            demand: [arguments.demand_ms; Stage::ALL.len()],
        }
    }
}

fn run(options: Options) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::Signals)?;
    let signals = Signals::caught(&runtime).map_err(Failure::Signals)?;
    let shop = Shop::start(options)?;
    // If the line cannot be written, the shop serves requests nevertheless.
    let _ = writeln!(io::stdout(), "shop listening on http://{}", shop.address());
    runtime.block_on(signals.first());
    shop.stop();
    Ok(())
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())? / 1_000.0;
    let demand = Duration::try_from_secs_f64(seconds).ok().filter(|demand| *demand <= MAX_DEMAND);
    demand.ok_or_else(|| "write a number from 0 to 60000".to_owned())
}
