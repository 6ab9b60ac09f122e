//! Cost: how much CPU time one request takes, beside HAProxy and nginx in the same run.
//!
//! Method in `bywash_bench::cost`. The proxies of a case are started together and loaded in turn,
//! in an order that rotates from round to round, so that a disturbance hits none of them always.

use bywash_bench::cost::round::{self, Overload, Sample};
use bywash_bench::cost::series::Series;
use bywash_bench::cost::upstream::Upstream;
use bywash_bench::cost::{CONNECTIONS, Case, LOAD_CORE, PROXY_CORE};
use bywash_bench::machine::{self, Machine};
use bywash_bench::peer::Kind;
use bywash_bench::proxy::{Plan, Proxy};
use bywash_bench::sys;
use bywash_bench::table::Table;
use clap::Parser;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Measures the CPU time of a proxied, a queued and a refused request, beside HAProxy and nginx
#[derive(Debug, Parser)]
struct Options {
    /// The bywash program
    #[arg(long, default_value = "target/release/bywash")]
    bywash: PathBuf,
    /// Rounds; each loads every proxy once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    reps: u32,
    /// Length of a proxy's turn in a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Measure this case only; may be repeated
    #[arg(long, value_enum)]
    case: Vec<Case>,
    /// Also write the results to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("cost: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    let machine = Machine::here();
    println!("{}", machine.line());
    let present = machine::installed(&[Kind::Bywash, Kind::Haproxy, Kind::Nginx], &options.bywash);
    // Threads inherit it: from here on this program, load and upstream included, is on one core.
    sys::pin_to(LOAD_CORE)?;
    let upstream = Upstream::start()?;
    let cases = if options.case.is_empty() { &Case::ALL[..] } else { &options.case };
    let (mut table, mut reports, mut noise) =
        (Table::new(2, &Series::HEAD), vec![], Noise::default());
    for &case in cases {
        let kinds = present.iter().map(|(kind, _)| *kind).filter(|&kind| case.suits(kind));
        let plans = kinds.map(|kind| plan(kind, case, &upstream, &options.bywash));
        let all = measure(&plans.collect::<Vec<_>>(), case, options)?;
        let haproxy = all.iter().find(|series| series.kind == Kind::Haproxy);
        for series in &all {
            table.row(series.cells(case, haproxy));
            noise.add(series);
        }
        let proxies: Vec<Value> = all.iter().map(|series| series.json(haproxy)).collect();
        reports.push(json!({ "case": case.to_string(), "proxies": proxies }));
    }
    println!("\n{}\n{}\n{noise}", table, method(options));
    match &options.json {
        Some(file) => {
            fs::write(file, format!("{:#}\n", document(&machine, &present, options, &reports)))
        }
        None => Ok(()),
    }
}

fn method(options: &Options) -> String {
    format!(
        "median [min–max] of {} rounds of {} s; {CONNECTIONS} keep-alive connections, 64 bytes, no \
         logs.\nOne worker on core {PROXY_CORE}; load and upstream on core {LOAD_CORE}. CPU is user \
         and system time of the process\nover requests answered. × HAProxy: ratio of the medians; \
         per round: ratio in each round.",
        options.reps, options.seconds
    )
}

fn document(
    machine: &Machine,
    present: &[(Kind, String)],
    options: &Options,
    reports: &[Value],
) -> Value {
    let version = |(kind, version): &(Kind, String)| (kind.to_string(), json!(version));
    let versions: serde_json::Map<_, _> = present.iter().map(version).collect();
    json!({
        "machine": machine.json(), "versions": versions, "connections": CONNECTIONS,
        "reps": options.reps, "seconds": options.seconds, "cases": reports,
    })
}

fn plan<'a>(kind: Kind, case: Case, upstream: &Upstream, bywash: &'a Path) -> Plan<'a> {
    let (task, upstream) = (case.task(), upstream.port());
    Plan { kind, task, upstream, bywash, core: Some(PROXY_CORE) }
}

fn measure(plans: &[Plan<'_>], case: Case, options: &Options) -> io::Result<Vec<Series>> {
    let proxies: Vec<Proxy> = plans.iter().map(Plan::start).collect::<io::Result<_>>()?;
    let new = |proxy: &Proxy| Series { kind: proxy.kind(), samples: Vec::new() };
    let mut all: Vec<Series> = proxies.iter().map(new).collect();
    for rep in 0..options.reps as usize {
        eprintln!("{case}: round {} of {}", rep + 1, options.reps);
        for turn in 0..proxies.len() {
            let next = (rep + turn) % proxies.len();
            let overload = Overload::impose(&proxies[next], case)?;
            let sample = round::run(&proxies[next], case, Duration::from_secs(options.seconds))?;
            overload.as_ref().map_or(Ok(()), Overload::check)?;
            all[next].samples.push(sample);
        }
    }
    Ok(all)
}

/// How far the numbers can be trusted.
#[derive(Debug, Default)]
struct Noise {
    widest: f64,
    stolen: f64,
    others: f64,
    idlest: Option<f64>,
}

impl Noise {
    /// Extremes further apart than this share of the median are called wide.
    const WIDE: f64 = 0.1;
    /// A proxy that was less busy waited for the load side.
    const IDLE: f64 = 0.95;

    fn add(&mut self, series: &Series) {
        let cpu = series.spread(Sample::cpu_us);
        self.widest = cpu.map_or(self.widest, |spread| self.widest.max(spread.width()));
        for sample in &series.samples {
            self.stolen = self.stolen.max(sample.stolen);
            self.others = self.others.max(sample.others);
            self.idlest = Some(self.idlest.map_or(sample.busy(), |busy| busy.min(sample.busy())));
        }
    }
}

impl std::fmt::Display for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [widest, stolen, others] = [self.widest, self.stolen, self.others].map(|x| x * 100.0);
        write!(
            f,
            "noise: CPU ranges up to {widest:.0} % of their median; up to {stolen:.1} % of the \
             machine stolen,\nup to {others:.1} % taken by other programs."
        )?;
        if self.widest > Self::WIDE {
            write!(f, "\nThe ranges are wide: read [min–max], and the ratio per round.")?;
        }
        if self.idlest.is_some_and(|busy| busy < Self::IDLE) {
            write!(
                f,
                "\nWhere busy is below {}, the load side was the limit, not the proxy.",
                Self::IDLE
            )?;
        }
        Ok(())
    }
}
