//! `bywash lab run`: a scenario in real time against a URL.

use std::net::SocketAddr;
use std::net::ToSocketAddrs;

use bywash_load::{Options, Progress};
use bywash_scenario::{Closes, Scenario};
use bywash_units::Span;

use super::{deliver, read};
use crate::args::LiveRun;
use crate::failure::Failure;
use crate::status::fetch;

pub(crate) fn live(args: &LiveRun) -> Result<(), Failure> {
    let scenario = read(&args.scenario)?;
    let options = options(args, &scenario)?;
    let run = bywash_load::run(&scenario, &options, &mut tell).map_err(Failure::running)?;
    eprintln!(
        "\nlag of the generator: p50 {}, p99 {}, worst {}",
        run.lag_p50, run.lag_p99, run.lag_max
    );
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
            return Err(Failure::usage(format!("the scenario has ρ {several:?}: choose by --rho")));
        }
    };
    let target = address(&args.target)?;
    if !target.ip().is_loopback() && !args.anywhere {
        let why = "is not this machine; --anywhere says that you may load it";
        return Err(Failure::usage(format!("{} {why}", args.target)));
    }
    let mut options = Options::new(&args.target, rho, args.seed);
    options.label.clone_from(&args.label);
    options.closes = if args.hidden { Closes::Hidden } else { Closes::Visible };
    if let Some(shop) = &args.shop {
        let shop = address(shop)?;
        options.busy = Some(Box::new(move || busy(shop)));
    }
    Ok(options)
}

fn address(url: &str) -> Result<SocketAddr, Failure> {
    let wrong = || Failure::usage(format!("{url} is no http://HOST:PORT that can be found"));
    let authority = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    let with_port =
        if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
    with_port.to_socket_addrs().ok().and_then(|mut all| all.next()).ok_or_else(wrong)
}

/// How long the shop's workers have been busy.
fn busy(shop: SocketAddr) -> Option<Span> {
    let stats = fetch(shop, "/-/stats").ok()?;
    let part = |key: &str| stats[key].as_u64();
    Some(Span::from_micros(part("busy_us_useful")? + part("busy_us_wasted")?))
}

fn tell(progress: &Progress) {
    eprint!("\r{}", line(progress));
}

/// How a run stands, in one line.
pub(crate) fn line(progress: &Progress) -> String {
    format!(
        "{:5.1} s  ρ {:<4}  made {:<7} answered {:<7} gave up {:<6} refused {:<6} failed {:<5} orders {:<5}",
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
