//! The program `bywash`.
//!
//! Data goes to standard output, messages to standard error. Exit codes: 0 success, 1 a failure
//! while running, 2 a wrong command line, 69 the admin listener cannot be reached, 78 a wrong
//! configuration, 99 a measurement did not meet its criteria.
//!
//! # Modules
//!
//! The lowest modules come first. A module uses only those above it in this list, which
//! `scripts/check-modules` checks.
//! - `state.rs`, `meters.rs`, `watchdog.rs`: the threads of `bywash run` next to the gateway.
//! - `names.rs`: server names that do not resolve.
//! - `metrics.rs`: the reference of the metrics.
//! - `presets/`: the configurations of known applications. `proposed.rs`: checks and writes the
//!   configurations that commands propose.
//! - `args/`: the command line.
//! - `run/`, `stopd.rs`, `shaper.rs`: the commands that run until they are stopped.
//! - `read.rs`: reads a document of one gateway, or of all gateways of a fleet, and prints it.
//! - `check.rs`, `init/`, `advise/`, `token_keys.rs`: the commands that read and write files.
//! - `policy/`, `status.rs`, `elephants.rs`, `sessions.rs`, `populations.rs`, `fleet.rs`,
//!   `audit.rs`, `requests.rs`, `console.rs`: the commands that ask a running gateway.
//! - `manual.rs`, `commands_page.rs`: the description of the command line for shells, for `man` and
//!   for the reference.

#[cfg(feature = "advise")]
mod advise;
mod args;
mod audit;
mod check;
mod commands_page;
mod console;
mod elephants;
mod fleet;
mod init;
mod manual;
mod meters;
mod metrics;
mod names;
mod policy;
mod populations;
mod presets;
mod proposed;
mod read;
mod requests;
mod run;
mod sessions;
mod shaper;
mod state;
mod status;
#[cfg(feature = "stopd")]
mod stopd;
mod token_keys;
mod watchdog;

use std::process::ExitCode;

use bywash_command::Failure;
use bywash_command::streams::{self, print, print_json};
use clap::Parser;
use tikv_jemallocator::Jemalloc;

use args::{Args, Command};

/// The allocator of the process. A request allocates about twenty times, mostly its own state and
/// buffers of a kilobyte or more. jemalloc hands out the block that was freed last, which is still
/// in the cache of the core. For these sizes glibc's allocator consolidates its free memory each
/// time, and musl's allocator is slower still.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let code = match dispatch(args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.code()
        }
    };
    bywash_terminal::stderr::flush(streams::FLUSHED);
    code
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(run) => run::run(&run),
        #[cfg(feature = "stopd")]
        Command::Stopd(args) => stopd::stopd(&args),
        Command::Shaper(command) => shaper::shaper(&command),
        Command::Check(check) => check::check(&check),
        Command::Init(args) => init::init(&args),
        Command::Schema => print_json(&bywash_config::schema()),
        Command::Example => print(&bywash_config::example()),
        Command::Reference => print(&bywash_config::reference()),
        Command::CommandsReference => print(&commands_page::page()),
        Command::MetricsReference { json } => metrics::metrics_reference(json),
        Command::Status(status) => status::status(&status),
        #[cfg(feature = "top")]
        Command::Top(top) => bywash_top::top(&top),
        Command::Sessions(sessions) => sessions::sessions(&sessions),
        Command::Populations(args) => populations::populations(&args),
        Command::Fleet(args::Fleet::Status(status)) => fleet::status(&status),
        Command::Elephants(what) => elephants::elephants(&what),
        Command::Policy(what) => policy::policy(&what),
        Command::Audit(args) => audit::audit(&args),
        Command::Export(args) => policy::export(&args),
        Command::Console(args) => console::console(&args),
        Command::Openapi => print_json(&bywash_api::openapi()),
        Command::Bypass(bypass) => status::bypass(&bypass),
        Command::Tap(tap) => requests::tap(&tap),
        Command::Explain(explain) => requests::explain(&explain),
        Command::TokenKeys(keys) => token_keys::token_keys(&keys),
        Command::Doctor(doctor) => bywash_doctor::doctor(&doctor),
        #[cfg(feature = "advise")]
        Command::Advise(args) => advise::advise(&args),
        #[cfg(feature = "lab")]
        Command::Demo(demo) => bywash_lab::demo(&demo),
        #[cfg(feature = "lab")]
        Command::Lab(command) => bywash_lab::lab(&command),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory: None } => manual::man(),
        Command::Man { directory: Some(folder) } => manual::pages(&folder),
    }
}
