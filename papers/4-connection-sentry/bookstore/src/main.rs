//! The store as a separate program, which also generates the trace.

use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bywash_bookstore::{
    Bookstore, BookstoreError, DatabaseUrl, DatabaseUrlError, Options, Stopd, calibrate, trace,
};
use bywash_lease::DatabaseName;
use bywash_site::Signals;
use clap::{Args, Parser, Subcommand};
use tokio::runtime::Builder;

/// The name of the environment variable with the database password. It is used if neither the
/// address of the database nor a password file has one.
const PASSWORD: &str = "BYWASH_BOOKSTORE_PASSWORD";

/// A bookstore with a fixed capacity and an expensive database, to be overloaded.
///
/// It serves GET / /search?q= /browse?category= /book?id= /file/N and POST /cart /buy. An order is
/// a committed row. GET /-/stats counts the outcomes of requests. GET /-/health says whether the
/// store is up.
///
/// A request may have its name in the header bywash-request. A request whose query is cancelled
/// gets 503.
#[derive(Debug, Parser)]
#[command(name = "bywash-bookstore", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a trace of 3,177 sessions and 123,664 requests
    Trace {
        /// Seed of the random numbers
        #[arg(long, default_value_t = 4)]
        seed: u64,
        /// Write statistics of the trace instead
        #[arg(long)]
        statistics: bool,
    },
}

#[derive(Debug, Args)]
struct Serve {
    /// Address to listen on; with port 0 a free port
    #[arg(long, default_value = "127.0.0.1:3001")]
    listen: SocketAddr,

    /// SQLite file, postgres://USER:PASSWORD@HOST:PORT/DATABASE or mysql://…; filled if it is empty
    /// [default: a temporary file]. The password can also be in the environment variable
    /// `BYWASH_BOOKSTORE_PASSWORD`
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

    /// Pages of text per book; the cost of a search is proportional to them [default: 8, or the
    /// number in the database]
    #[arg(long)]
    pages: Option<u32>,

    /// Name the request in a comment in front of each statement
    #[arg(long)]
    tag: bool,

    /// Regard a database server as lost if it says nothing for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    silence: u64,

    /// Socket of the stop daemon, to lease connections for requests
    #[arg(long, value_name = "SOCKET")]
    stopd: Option<PathBuf>,

    /// Name of the database at the stop daemon; not used with SQLite
    #[arg(long, default_value = "shop", requires = "stopd")]
    name: DatabaseName,

    /// Measure and print the cost of each service alone, and end
    #[arg(long)]
    calibrate: bool,
}

/// The maximum time that running requests may take to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// The reason why the program failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Bookstore(#[from] BookstoreError),
    #[error("{0}")]
    DatabaseUrl(#[from] DatabaseUrlError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error("cannot write: {0}")]
    Write(io::Error),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.command {
        Some(Command::Trace { seed, statistics }) => write_trace(seed, statistics),
        None => serve(arguments.serve),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bywash-bookstore: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn write_trace(seed: u64, statistics: bool) -> Result<(), Failure> {
    let trace = trace::Trace::generate(seed);
    let mut out = BufWriter::new(io::stdout().lock());
    let written =
        if statistics { write!(out, "{}", trace.statistics()) } else { trace.write(&mut out) };
    match written.and_then(|()| out.flush()) {
        // The reader has closed the pipe, which is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Failure::Write),
    }
}

fn serve(arguments: Serve) -> Result<(), Failure> {
    let calibrates = arguments.calibrate;
    let options = arguments.options()?;
    if calibrates { print_costs(&options) } else { run(options) }
}

impl Serve {
    fn options(self) -> Result<Options, Failure> {
        let url = self.database.unwrap_or(DatabaseUrl::Sqlite(None));
        let database = url.with_password_from(self.password_file.as_deref(), PASSWORD)?;
        Ok(Options {
            listen: self.listen,
            database,
            workers: self.workers,
            backlog: self.backlog,
            pages: self.pages,
            tags: self.tag,
            silence: Duration::from_secs(self.silence),
            stopd: self.stopd.map(|socket| Stopd { socket, name: self.name }),
        })
    }
}

/// Prints one line for each service: its name, its cost in milliseconds, and the ratio of its cost
/// to that of a search.
fn print_costs(options: &Options) -> Result<(), Failure> {
    let costs = calibrate(options)?;
    let search = costs.iter().find(|cost| cost.service == bywash_bookstore::Service::Search);
    let search = search.map_or(f64::NAN, |cost| cost.time.as_secs_f64());
    let mut out = io::stdout().lock();
    for cost in &costs {
        let seconds = cost.time.as_secs_f64();
        let (name, share) = (cost.service.name(), seconds / search);
        writeln!(out, "{name:<8} {:>9.3} ms  {share:.3}", seconds * 1e3).map_err(Failure::Write)?;
    }
    Ok(())
}

fn run(options: Options) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::Signals)?;
    let signals = Signals::caught(&runtime).map_err(Failure::Signals)?;
    // Start outside the event loop, because connections to a database have their own event loops.
    let bookstore = Bookstore::start(options)?;
    let stats = bookstore.stats().database;
    // If the line cannot be printed, the store still serves.
    let _ = writeln!(
        io::stdout(),
        "bookstore listening on http://{}, {} with {} pages a book",
        bookstore.address(),
        stats.kind,
        stats.pages
    );
    runtime.block_on(signals.first());
    leave(bookstore)
}

/// Stops the store, and gives running requests [`GRACE`] to end. A request that still waits for the
/// database then ends with the process.
fn leave(bookstore: Bookstore) -> Result<(), Failure> {
    let (done, left) = mpsc::channel();
    let stopping = thread::Builder::new().spawn(move || {
        bookstore.stop();
        done.send(())
    });
    stopping.map_err(Failure::Signals)?;
    let _ = left.recv_timeout(GRACE);
    Ok(())
}
