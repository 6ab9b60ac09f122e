//! The command-line program of the auction site.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bywash_auction::{Auction, AuctionError, DatabaseUrl, DatabaseUrlError, Options, Sizes};
use bywash_site::Signals;
use clap::Parser;
use tokio::runtime::Builder;

/// The name of the environment variable with the database password. It is used if neither the
/// address of the database nor a password file has one.
const PASSWORD: &str = "BYWASH_AUCTION_PASSWORD";

/// An auction in the manner of `RUBiS` with an expensive database, to be overloaded.
///
/// It serves / and `RUBiS`'s pages under /PHP. A generated user N is userN with the password
/// passwordN. GET /-/stats counts the outcomes of requests. GET /-/health says whether the auction
/// is up.
#[derive(Debug, Parser)]
#[command(name = "bywash-auction", version)]
struct Arguments {
    /// Address to listen on; with port 0 a free port
    #[arg(long, default_value = "127.0.0.1:3002")]
    listen: SocketAddr,

    /// SQLite file, postgres://USER:PASSWORD@HOST:PORT/DATABASE or mysql://…; filled if it is empty
    /// [default: a temporary file]. The password can also be in the environment variable
    /// `BYWASH_AUCTION_PASSWORD`
    #[arg(long, value_name = "PLACE")]
    database: Option<DatabaseUrl>,

    /// File with the password of the database in its first line
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Requests that run at a time, each with a database connection
    #[arg(long, default_value_t = 16)]
    workers: usize,

    /// Requests that may wait for a worker; further ones get 503
    #[arg(long, default_value_t = 511)]
    backlog: usize,

    /// Number of users
    #[arg(long, default_value_t = Sizes::default().users)]
    users: i64,

    /// Number of items; four of five are still on sale
    #[arg(long, default_value_t = Sizes::default().items)]
    items: i64,

    /// Bids per item on average; the cost of a search is about proportional to them
    #[arg(long, default_value_t = Sizes::default().bids)]
    bids: i64,

    /// Number of comments on users
    #[arg(long, default_value_t = Sizes::default().comments)]
    comments: i64,

    /// Seed of the random numbers
    #[arg(long, default_value_t = Sizes::default().seed)]
    seed: u64,

    /// Regard a database server as lost if it says nothing for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    silence: u64,
}

/// The maximum time that running requests may take to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// The reason why the program failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Auction(#[from] AuctionError),
    #[error("{0}")]
    DatabaseUrl(#[from] DatabaseUrlError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

fn main() -> ExitCode {
    match Arguments::parse().options().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bywash-auction: {failure}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn options(self) -> Result<Options, Failure> {
        let Self { listen, workers, backlog, users, items, bids, comments, seed, .. } = self;
        let url = self.database.unwrap_or(DatabaseUrl::Sqlite(None));
        Ok(Options {
            listen,
            database: url.with_password_from(self.password_file.as_deref(), PASSWORD)?,
            workers,
            backlog,
            sizes: Sizes { users, items, bids, comments, seed },
            silence: Duration::from_secs(self.silence),
        })
    }
}

fn run(options: Options) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::Signals)?;
    let signals = Signals::caught(&runtime).map_err(Failure::Signals)?;
    // Start outside the event loop, because connections to a database have their own event loops.
    let auction = Auction::start(options)?;
    let (address, kind) = (auction.address(), auction.stats().database.kind);
    // If the line cannot be printed, the auction still serves.
    let _ = writeln!(io::stdout(), "auction listening on http://{address}, {kind}");
    runtime.block_on(signals.first());
    leave(auction)
}

/// Stops the auction, and gives running requests [`GRACE`] to end. A request that still waits for
/// the database then ends with the process.
fn leave(auction: Auction) -> Result<(), Failure> {
    let (done, left) = mpsc::channel();
    let stopping = thread::Builder::new().spawn(move || {
        auction.stop();
        done.send(())
    });
    stopping.map_err(Failure::Signals)?;
    let _ = left.recv_timeout(GRACE);
    Ok(())
}
