//! `cost latency`: the time that a proxy adds to a request at a light load.
//!
//! The same open loop of requests is sent to the upstream directly and through each proxy, one
//! after another. Their order rotates from round to round. The added time is a quantile through the
//! proxy minus the same quantile of the direct requests. Most of both quantiles is the time to wake
//! a CPU core, which depends on the machine.

use bywash_harness::machine::{LOAD_CORE, PROXY_CORE};
use bywash_harness::open_loop::{self, Answer, Load, Phase, Reuse};
use bywash_harness::peer::{PeerKind, Task};
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Bench, Common, Report, not_available};
use bywash_harness::stats::{Spread, percentile};
use bywash_harness::sys;
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Duration, number of rounds and rate
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Number of rounds; each measures every way once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    reps: u32,
    /// Seconds of a turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Requests per second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    rate: u32,
}

/// Number of connections, which are used in turn. Each is idle for a while between two requests, as
/// real ones are.
const CONNECTIONS: usize = 16;
/// Time at the start of each measurement of a target that is not counted, because caches fill in
/// it.
const WARM_UP: Duration = Duration::from_millis(500);
/// Minimum fraction of requests answered. With fewer answers, latency was not measured.
const ANSWERED: f64 = 0.999;
/// Time limit of a request, after which it counts as unanswered.
const PATIENCE: Duration = Duration::from_secs(5);

/// A target of requests: a proxy, or the upstream itself. The results of its measurements are in
/// µs.
struct Target {
    name: String,
    port: u16,
    p50: Vec<f64>,
    p99: Vec<f64>,
    /// The 99th percentile of the load generator's own delay, in µs, for each measurement of the
    /// target.
    late: Vec<f64>,
}

/// Measures all selected targets and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    let programs = &options.common.programs;
    let bench = Bench::set(&PeerKind::ALL, programs);
    sys::pin_to(LOAD_CORE)?;
    let upstream = Upstream::start()?;
    let mut proxies: Vec<Proxy> = Vec::new();
    for kind in bench.kinds() {
        let plan = Plan::new(kind, Task::Forward { limit: 1024 }, upstream.port(), programs);
        match (Plan { core: Some(PROXY_CORE), ..plan }).start() {
            Ok(proxy) => proxies.push(proxy),
            Err(e) => not_available(&kind.to_string(), &e.to_string()),
        }
    }
    let mut targets = vec![Target::new("direct".into(), upstream.port())];
    targets.extend(proxies.iter().map(|proxy| Target::new(proxy.kind().to_string(), proxy.port())));
    for rep in 0..options.reps as usize {
        eprintln!("latency: round {} of {}", rep + 1, options.reps);
        for turn in 0..targets.len() {
            let next = (rep + turn) % targets.len();
            targets[next].measure(options)?;
        }
    }
    bench.publish(&[report(&targets, options)], &options.common)
}

impl Target {
    fn new(name: String, port: u16) -> Self {
        Self { name, port, p50: Vec::new(), p99: Vec::new(), late: Vec::new() }
    }

    fn measure(&mut self, options: &Options) -> io::Result<()> {
        let length = Duration::from_secs(options.seconds) + WARM_UP;
        let phases = vec![Phase::new(f64::from(options.rate), length)];
        let reuse = Reuse::Turns(CONNECTIONS);
        let load = Load { port: self.port, phases, patience: PATIENCE, reuse, sources: 0..0 };
        let answers = load.start().finish()?;
        let answers = open_loop::within(&answers, WARM_UP, length);
        if open_loop::goodput(&answers).is_none_or(|good| good < ANSWERED) {
            let ends = open_loop::show_ends(&answers);
            return Err(io::Error::other(format!(
                "{}: too few requests were answered: {ends}",
                self.name
            )));
        }
        let micros = |time: fn(&Answer) -> Duration, p: f64| {
            let all: Vec<f64> = answers.iter().map(|a| time(a).as_secs_f64() * 1e6).collect();
            percentile(&all, p).unwrap_or_default()
        };
        self.p50.push(micros(|answer| answer.took, 0.5));
        self.p99.push(micros(|answer| answer.took, 0.99));
        self.late.push(micros(|answer| answer.late, 0.99));
        Ok(())
    }
}

fn report(targets: &[Target], options: &Options) -> Report {
    let head = ["way", "p50 µs", "p99 µs", "added p50", "added p99", "load late p99"];
    let mut table = Table::new(1, &head);
    let mut rows = Vec::new();
    let direct = targets.first().map(|target| [spread(&target.p50), spread(&target.p99)]);
    for target in targets {
        let [p50, p99, late] = [&target.p50, &target.p99, &target.late].map(|times| spread(times));
        let added = direct.map(|[d50, d99]| [p50.median - d50.median, p99.median - d99.median]);
        let is_proxy = target.name != "direct";
        let added = added.filter(|_| is_proxy);
        let show = |n: usize| added.map_or("-".into(), |added| format!("{:.0}", added[n]));
        let name = target.name.clone();
        table.row(vec![name, p50.show(0), p99.show(0), show(0), show(1), late.show(0)]);
        rows.push(json!({
            "way": target.name, "p50_us": p50.json(), "p99_us": p99.json(), "late_p99_us": late.json(),
            "added_p50_us": added.map(|added| added[0]), "added_p99_us": added.map(|added| added[1]),
        }));
    }
    let json: Value = json!({
        "reps": options.reps, "seconds": options.seconds, "rate": options.rate, "ways": rows,
    });
    Report { table, method: method(options), json, broken: Vec::new() }
}

/// Returns the spread of `times` over the rounds. `times` must have a value for every round.
fn spread(times: &[f64]) -> Spread {
    Spread::of(times.iter().copied()).unwrap_or(Spread { min: 0.0, median: 0.0, max: 0.0 })
}

fn method(options: &Options) -> String {
    format!(
        "Median [min–max] of {} rounds of {} s; {} requests/s, evenly spaced, over {CONNECTIONS} \
         keep-alive connections in turn.\nTimes are from the moment at which a request is due to \
         its answer. Proxy on core {PROXY_CORE}; load and upstream on core\n{LOAD_CORE}. added: \
         difference of the medians to direct. load late: from due to sent, which is part of each \
         time.",
        options.reps, options.seconds, options.rate
    )
}
