//! `survival memory`: connections that make a gateway hold memory.
//!
//! Two parts. The first measures what one connection of each kind costs: the memory (PSS) of a gateway
//! before and with a few hundred of them. The second confines the gateway to a control group, opens ten
//! thousand of all kinds at once, opens again whatever is closed, and sends a steady load of honest requests
//! beside: is the gateway still there, and how long do they take?

mod client;

use crate::confine::{Confinement, OwnedGroup};
use crate::cost::{LOAD_CORE, PROXY_CORE};
use crate::open_loop::{self, End, Load, Phase, Reuse};
use crate::peer::{self, Front, Programs, Setup, Task};
use crate::procfs;
use crate::proxy::{Plan, Proxy};
use crate::report::{Bench, Common, Report, not_available};
use crate::sys;
use crate::table::Table;
use crate::upstream::Upstream;
use client::{Hostile, Kind};
use serde_json::json;
use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// How many.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Connections of each kind in the first part; 0 leaves it out
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=2_000))]
    each: u32,
    /// Connections of all kinds together in the second part; 0 leaves it out
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=50_000))]
    crowd: u32,
    /// Limit of the control group in the second part, in MiB
    #[arg(long, default_value_t = 256)]
    memory: u64,
}

/// What a gateway needs to deal with what it was sent, and less than it lingers.
const SETTLE: Duration = Duration::from_millis(700);
/// Honest requests per second, on connections that take turns.
const RATE: f64 = 250.0;
const HONEST: usize = 50;
/// An answer that takes longer is none to them.
const PATIENCE: Duration = Duration::from_secs(2);
const BEFORE: Duration = Duration::from_secs(3);
const MEANWHILE: Duration = Duration::from_secs(15);
/// The promise.
const P99_MOST: f64 = 100_000.0;

/// Measures and prints.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    sys::raise_descriptor_limit()?;
    let bench = Bench::set(&[peer::Kind::Bywash], &options.common.programs);
    sys::pin_to(LOAD_CORE)?;
    let mut reports = Vec::new();
    if options.each > 0 {
        reports.push(costs(&options.common.programs, options.each));
    }
    if options.crowd > 0 {
        match crowd(options) {
            Ok(report) => reports.push(report),
            Err(e) => not_available("the crowd", &e.to_string()),
        }
    }
    bench.publish(&reports, &options.common)
}

fn costs(programs: &Programs, count: u32) -> Report {
    let head = ["connection", "KiB each", "counted KiB"];
    let (mut table, mut list) = (Table::new(1, &head), Vec::new());
    for kind in Kind::ALL {
        let (each, counted) = match cost(kind, programs, count) {
            Ok(cost) => cost,
            Err(e) => {
                not_available(&kind.to_string(), &e.to_string());
                continue;
            }
        };
        let kib = |bytes: f64| format!("{:.1}", bytes / 1024.0);
        let told = counted.map_or("-".to_owned(), kib);
        table.row(vec![kind.to_string(), kib(each), told]);
        list.push(json!({ "kind": kind.to_string(), "bytes": each, "counted": counted }));
    }
    let method = format!(
        "PSS of the process: more for each of {count} connections of a kind, all slots taken. counted: what \
         the gateway says of it (`memory.used`)."
    );
    Report { table, method, json: json!({ "costs": list }), broken: Vec::new() }
}

/// Bytes of one connection: of memory, and as the gateway counts them if it does.
fn cost(kind: Kind, programs: &Programs, count: u32) -> io::Result<(f64, Option<f64>)> {
    let upstream = Upstream::start()?;
    let front = if kind.is_tls() { Front::Tls } else { Front::Http1 };
    let waiting = Some(if kind == Kind::Refused { 1 } else { 100_000 });
    let slots = if kind.needs_slot() { 1024 } else { 1 };
    let setup = Setup { front, connections: count + 500, waiting, ..Setup::default() };
    let plan =
        Plan::new(peer::Kind::Bywash, Task::Forward { limit: slots }, upstream.port(), programs);
    let proxy = Plan { setup, core: Some(PROXY_CORE), ..plan }.start()?;
    let _warm: Vec<Hostile> = open(&proxy, kind, 20)?;
    let _held = if kind.needs_slot() { Vec::new() } else { open(&proxy, Kind::Holder, 2)? };
    thread::sleep(SETTLE);
    let used = || proxy.status("memory/used").ok().map(|bytes| bytes as f64);
    let (base, counted) = (procfs::memory(proxy.pid())?, used());
    let _all = open(&proxy, kind, count as usize)?;
    thread::sleep(SETTLE);
    let each = |more: f64| more / f64::from(count);
    let grown = procfs::memory(proxy.pid())?.saturating_sub(base) as f64;
    Ok((each(grown), used().zip(counted).map(|(now, before)| each(now - before))))
}

fn open(proxy: &Proxy, kind: Kind, count: usize) -> io::Result<Vec<Hostile>> {
    (0..count).map(|n| Hostile::open(kind, n, proxy.port())).collect()
}

fn crowd(options: &Options) -> io::Result<Report> {
    let (programs, count) = (&options.common.programs, options.crowd as usize);
    let group = OwnedGroup::new(options.memory << 20)?;
    let upstream = Upstream::start()?;
    let confinement = Confinement { memory: Some(group.group()), ..Confinement::default() };
    let setup = Setup { connections: 20_000, ..Setup::default() };
    // More slots than anybody can take: this is about memory, not about slots.
    let task = Task::Forward { limit: 15_000 };
    let plan = Plan::new(peer::Kind::Bywash, task, upstream.port(), programs);
    let proxy = Plan { setup, confinement, core: Some(PROXY_CORE), ..plan }.start()?;
    let phases = vec![Phase::new(RATE, BEFORE + MEANWHILE)];
    let load = Load {
        port: proxy.port(),
        phases,
        patience: PATIENCE,
        reuse: Reuse::Turns(HONEST),
        sources: 0..0,
    };
    let running = load.start();
    running.wait_until(BEFORE);
    let (begun, pid) = (running.elapsed(), proxy.pid());
    let (mut most, mut used, mut opened) = (0, 0, 0);
    let kinds = Kind::CROWD;
    let mut hostile: Vec<Option<Hostile>> = (0..count).map(|_| None).collect();
    let end = Instant::now() + MEANWHILE;
    let mut looked = Instant::now();
    let mut n = 0;
    while Instant::now() < end && procfs::is_alive(pid) {
        let place = &mut hostile[n % count];
        if place.as_mut().is_none_or(Hostile::is_over) {
            *place = Hostile::open(kinds[n % kinds.len()], n, proxy.port()).ok();
            opened += 1;
        }
        n += 1;
        if looked.elapsed() > Duration::from_millis(100) {
            looked = Instant::now();
            most = most.max(procfs::memory(pid).unwrap_or(0));
            used = used.max(proxy.status("memory/used").unwrap_or(0));
        }
    }
    let survives = procfs::is_alive(pid);
    let to = running.elapsed();
    let answers = running.finish()?;
    let meanwhile = open_loop::within(&answers, begun, to);
    let p99 = open_loop::percentile_us(&meanwhile, 0.99);
    let served = meanwhile.iter().filter(|answer| answer.end == End::Status(200)).count();
    let open = hostile.iter().flatten().count();
    let mib = |bytes: u64| format!("{:.0}", bytes as f64 / 1_048_576.0);
    let head = [
        "open",
        "opened",
        "alive",
        "PSS MiB",
        "group MiB",
        "counted MiB",
        "honest served",
        "p99 ms",
    ];
    let mut table = Table::new(0, &head);
    table.row(vec![
        open.to_string(),
        opened.to_string(),
        if survives { "yes" } else { "KILLED" }.to_owned(),
        mib(most),
        group.most().map_or("-".to_owned(), mib),
        mib(used),
        format!("{served} of {}", meanwhile.len()),
        p99.map_or("-".to_owned(), |us| format!("{:.1}", us / 1000.0)),
    ]);
    let method = format!(
        "A control group of {} MiB, {count} connections of {} kinds, opened again as soon as they are closed, for \
         {} s;\n{RATE:.0} honest requests/s on {HONEST} connections beside: {}.",
        options.memory,
        kinds.len(),
        MEANWHILE.as_secs(),
        open_loop::show_ends(&meanwhile),
    );
    let mut broken = Vec::new();
    if !survives {
        broken.push("the gateway was killed".to_owned());
    }
    if p99.is_none_or(|us| us > P99_MOST) || served < meanwhile.len() {
        broken.push(format!(
            "honest clients: {served} of {} served, p99 {p99:?} µs",
            meanwhile.len()
        ));
    }
    let json = json!({ "crowd": {
        "open": open, "opened": opened, "survives": survives, "pss_bytes": most, "group_bytes": group.most(),
        "counted_bytes": used, "honest": meanwhile.len(), "served": served, "p99_us": p99,
    } });
    Ok(Report { table, method, json, broken })
}
