//! `cost`: the CPU time of one request in each case, compared with the other programs.
//!
//! All proxies of a case are started together and loaded in turn. The order rotates from round to
//! round, so that a disturbance does not always affect the same proxy.

use super::noise::Noise;
use super::round::{self, Overload, Sample};
use super::series::Series;
use super::{CONNECTIONS, Case, h2load};
use bywash_harness::machine::{LOAD_CORE, PROXY_CORE};
use bywash_harness::peer::{PeerKind, Programs, Setup};
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Bench, Common, Report, not_available};
use bywash_harness::sys;
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use bywash_peer::Scratch;
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Duration, number of rounds and cases
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Number of rounds; each loads every proxy once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    reps: u32,
    /// Seconds for which each proxy is loaded in a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Measure only this case; may be repeated
    #[arg(long, value_enum)]
    case: Vec<Case>,
}

/// Time for which each proxy is loaded before the first round, to check that it works. The results
/// are discarded.
const TRIAL: Duration = Duration::from_secs(1);

/// Measures all selected cases and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    let programs = &options.common.programs;
    let bench = Bench::set(&PeerKind::ALL, programs);
    // Threads inherit this setting. From here on, all threads of this program run on one core,
    // including load generator and upstream.
    sys::pin_to(LOAD_CORE)?;
    let upstream = Upstream::start()?;
    let logs = Scratch::new("cost")?;
    let cases = if options.case.is_empty() { &Case::ALL[..] } else { &options.case };
    let mut table = Table::new(2, &Series::HEAD);
    let (mut reports, mut noise) = (Vec::new(), Noise::default());
    for &case in cases.iter().filter(|&&case| has_load(case)) {
        let kinds = bench.kinds().filter(|&kind| case.is_supported_by(kind));
        let plans: Vec<Plan> =
            kinds.map(|kind| plan(kind, case, &upstream, programs, &logs)).collect();
        let all = measure(&plans, case, options)?;
        let haproxy = all.iter().find(|series| series.kind == PeerKind::Haproxy);
        for series in &all {
            table.row(series.cells(case, haproxy));
            noise.add(series);
        }
        let proxies: Vec<Value> = all.iter().map(|series| series.json(haproxy)).collect();
        reports.push(json!({ "case": case.to_string(), "proxies": proxies }));
    }
    let json = json!({
        "connections": CONNECTIONS, "reps": options.reps, "seconds": options.seconds,
        "cases": reports,
    });
    let method = format!("{}\n{noise}", method(options));
    let report = Report { table, method, json, broken: Vec::new() };
    bench.publish(&[report], &options.common)
}

fn method(options: &Options) -> String {
    format!(
        "Median [min–max] of {} rounds of {} s; {CONNECTIONS} keep-alive connections, answers of \
         64 bytes, no logs except in the case logged.\nOne worker on core {PROXY_CORE}; load and upstream on core \
         {LOAD_CORE}. CPU: user and system time of the process\nper answered request. × HAProxy: \
         ratio of the medians; per round: ratio in each round.\nhttp2: 16 connections of 8 \
         streams, without TLS. handshake: full TLS 1.3 handshakes (P-256), no requests.",
        options.reps, options.seconds
    )
}

fn has_load(case: Case) -> bool {
    let missing = (case == Case::Http2).then(h2load::version).and_then(Result::err);
    if let Some(e) = &missing {
        not_available(&case.to_string(), &format!("h2load (nghttp2) does not run: {e}"));
    }
    missing.is_none()
}

fn plan<'a>(
    kind: PeerKind,
    case: Case,
    upstream: &Upstream,
    programs: &'a Programs,
    logs: &Scratch,
) -> Plan<'a> {
    let access_log = (case == Case::Logged).then(|| logs.join("access.log"));
    let setup = Setup { front: case.front(), access_log, ..Setup::default() };
    let plan = Plan::new(kind, case.task(), upstream.port(), programs);
    Plan { core: Some(PROXY_CORE), setup, ..plan }
}

fn measure(plans: &[Plan<'_>], case: Case, options: &Options) -> io::Result<Vec<Series>> {
    let proxies: Vec<Proxy> = plans.iter().filter_map(|plan| start(plan, case)).collect();
    let new = |proxy: &Proxy| Series { kind: proxy.kind(), samples: Vec::new() };
    let mut all: Vec<Series> = proxies.iter().map(new).collect();
    for rep in 0..options.reps as usize {
        eprintln!("{case}: round {} of {}", rep + 1, options.reps);
        for turn in 0..proxies.len() {
            let next = (rep + turn) % proxies.len();
            let length = Duration::from_secs(options.seconds);
            all[next].samples.push(go(&proxies[next], case, length)?);
        }
    }
    Ok(all)
}

fn go(proxy: &Proxy, case: Case, length: Duration) -> io::Result<Sample> {
    let overload = Overload::start(proxy, case)?;
    let sample = round::run(proxy, case, length)?;
    if case == Case::Logged && proxy.kind() == PeerKind::Bywash {
        let dropped = proxy.status("access_log_dropped")?;
        if dropped > 0 {
            return Err(io::Error::other(format!("{dropped} lines of the access log are lost")));
        }
    }
    overload.as_ref().map_or(Ok(()), Overload::check)?;
    Ok(sample)
}

/// Starts a proxy, and loads it for [`TRIAL`]. Returns `None` if the proxy cannot handle the case:
/// not every version of each program supports every protocol.
fn start(plan: &Plan<'_>, case: Case) -> Option<Proxy> {
    let tried = plan.start().and_then(|proxy| go(&proxy, case, TRIAL).map(|_| proxy));
    let tell = |e: io::Error| not_available(&format!("{case}, {}", plan.kind), &e.to_string());
    tried.map_err(tell).ok()
}
