//! `bywash lab run`: runs a scenario in real time against a URL.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};

use bywash_command::Failure;
use bywash_command::admin_client::fetch;
use bywash_command::streams::{draw, is_terminal, say};
use bywash_load::{LoadError, Options, Progress};
use bywash_scenario::{Closes, Scenario};
use bywash_units::TimeSpan;

use super::{deliver, prepare_report, read};
use crate::args::LiveRun;

pub(super) fn live(args: &LiveRun) -> Result<(), Failure> {
    let scenario = read(&args.scenario)?;
    let options = options(args, &scenario)?;
    args.report.as_deref().map_or(Ok(()), prepare_report)?;
    let mut line = Line::new();
    let run = bywash_load::run(&scenario, &options, &mut |progress| line.show(progress));
    let run = run.map_err(|error| not_begun(&error))?;
    line.end();
    say(format!(
        "lag of the load generator: p50 {}, p99 {}, worst {}",
        run.lag_p50, run.lag_p99, run.lag_max
    ));
    deliver(&run.result(&scenario, &options), args.json, args.report.as_deref())?;
    match run.invalid {
        Some(why) => Err(Failure::running(format!("the run is invalid: {why}"))),
        None => Ok(()),
    }
}

fn options(args: &LiveRun, scenario: &Scenario) -> Result<Options, Failure> {
    let rho = match (args.rho, scenario.rho.as_slice()) {
        (Some(rho), _) => rho,
        (None, [only]) => *only,
        (None, several) => {
            return Err(Failure::usage(format!(
                "the scenario has several ρ, {several:?}: choose one with --rho"
            )));
        }
    };
    let target = addresses("--target", &args.target)?;
    if !args.anywhere && !target.iter().all(|address| address.ip().is_loopback()) {
        let why = "is not this machine; add --anywhere if you are allowed to load it";
        return Err(Failure::usage(format!("{} {why}", args.target)));
    }
    let mut options = Options::new(&args.target, rho, args.seed);
    options.label.clone_from(&args.label);
    options.closes = if args.hidden { Closes::Hidden } else { Closes::Visible };
    options.own_addresses = args.own_addresses;
    if let Some(url) = &args.shop {
        let shop = addresses("--shop", url)?[0];
        if busy(shop).is_none() {
            return Err(Failure::running(format!(
                "--shop {url}: no shop answers /-/stats at this URL"
            )));
        }
        options.busy = Some(Box::new(move || busy(shop)));
    }
    Ok(options)
}

/// Returns the addresses, at least one, that the host of `http://HOST:PORT` resolves to. Fails for
/// any other form of URL. The error names the command-line option `option`.
fn addresses(option: &str, url: &str) -> Result<Vec<SocketAddr>, Failure> {
    let shape = || {
        let why = "write http://HOST:PORT, as in http://127.0.0.1:8080 (https is not supported)";
        Failure::usage(format!("{option} {url}: {why}"))
    };
    let authority = url.strip_prefix("http://").ok_or_else(shape)?;
    match authority.trim_end_matches('/').to_socket_addrs() {
        Ok(found) if found.len() > 0 => Ok(found.collect()),
        Err(error) if error.kind() != ErrorKind::InvalidInput => {
            Err(Failure::running(format!("{option} {url}: {error}")))
        }
        _ => Err(shape()),
    }
}

pub(super) fn not_begun(error: &LoadError) -> Failure {
    match error {
        LoadError::NotATarget(_)
        | LoadError::NotHttp(_)
        | LoadError::NoPort(_)
        | LoadError::Rho(_)
        | LoadError::Tag(_) => Failure::usage(error),
        LoadError::WaitsForService
        | LoadError::Changes
        | LoadError::Adversaries
        | LoadError::NoCookies
        | LoadError::Shapes { .. }
        | LoadError::Nobody { .. }
        | LoadError::Request { .. }
        | LoadError::Signal { .. } => Failure::configuration(format!("bywash: {error}")),
        LoadError::Unreachable { .. } | LoadError::Runtime(_) => Failure::running(error),
    }
}

/// Returns the total time that the shop's workers have been busy; `None` if the shop does not
/// report it.
fn busy(shop: SocketAddr) -> Option<TimeSpan> {
    let stats = fetch(shop, "/-/stats").ok()?;
    let part = |key: &str| stats[key].as_u64();
    Some(TimeSpan::from_micros(part("busy_us_useful")? + part("busy_us_wasted")?))
}

/// The progress line of a run. On a terminal the line is redrawn in place. Elsewhere a new line is
/// printed every five seconds.
pub(super) struct Line {
    terminal: bool,
    /// The time at which the next new line is due, in seconds since the start of the run.
    due: u64,
}

impl Line {
    const EVERY: u64 = 5;

    pub(super) fn new() -> Self {
        Self { terminal: is_terminal(), due: Self::EVERY }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let second = progress.elapsed.as_secs_f64() as u64;
        if self.terminal {
            // Switch line wrapping off, so that a narrow terminal does not scroll.
            draw(&format!("\x1b[?7l\r\x1b[2K{}\x1b[?7h", words(progress)));
        } else if second >= self.due {
            self.due = second - second % Self::EVERY + Self::EVERY;
            say(words(progress));
        }
    }

    pub(super) fn end(&self) {
        if self.terminal {
            say("");
        }
    }
}

fn words(progress: &Progress) -> String {
    format!(
        "{:4.0} s  ρ {:<3}  asked {}, answered {}, gave up {}, refused {}, failed {}; orders {}",
        progress.elapsed.as_secs_f64(),
        progress.rho_now,
        progress.generated,
        progress.completed,
        progress.timed_out,
        progress.dropped,
        progress.failed,
        progress.orders
    )
}
