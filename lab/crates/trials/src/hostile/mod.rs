//! `survival memory`: connections that make a gateway hold memory.
//!
//! Measures the memory of one connection of each kind in two ways:
//!
//! - the growth of the gateway's memory (PSS) when a number of connections is opened, divided by
//!   the number;
//! - the gateway's own count of the memory that these connections hold.
//!
//! The growth is measured twice: for the first connections, and for the same number of further
//! connections. The first connections use more memory, because the program allocates some memory
//! only once: pages of its allocator and buffers of its threads. `attacks --attack memory` opens
//! all kinds at once.

mod client;

use bywash_harness::machine::{LOAD_CORE, PROXY_CORE};
use bywash_harness::peer::{self, Front, Programs, Setup, Task};
use bywash_harness::procfs;
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Bench, Common, Report, not_available};
use bywash_harness::sys;
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use client::{ConnectionKind, Hostile};
use serde_json::json;
use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Number of connections
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Connections of each kind; use many, because memory comes in pages of 2 MiB
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    each: u32,
}

/// Time that a gateway gets to handle the bytes that it has received. It is shorter than the time
/// for which the gateway keeps a refused connection before it closes it.
const SETTLE: Duration = Duration::from_millis(700);

/// Measures all kinds of connections and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    sys::raise_descriptor_limit()?;
    let bench = Bench::set(&[peer::PeerKind::Bywash], &options.common.programs);
    sys::pin_to(LOAD_CORE)?;
    let reports = [costs(&options.common.programs, options.each)];
    bench.publish(&reports, &options.common)
}

fn costs(programs: &Programs, count: u32) -> Report {
    let head = ["connection", "KiB each at first", "KiB each", "counted KiB"];
    let (mut table, mut list) = (Table::new(1, &head), Vec::new());
    for kind in ConnectionKind::ALL {
        let Cost { first, each, counted } = match cost(kind, programs, count) {
            Ok(cost) => cost,
            Err(e) => {
                not_available(&kind.to_string(), &e.to_string());
                continue;
            }
        };
        let kib = |bytes: f64| format!("{:.1}", bytes / 1024.0);
        let counted_kib = counted.map_or("-".to_owned(), kib);
        table.row(vec![kind.to_string(), kib(first), kib(each), counted_kib]);
        list.push(json!({
            "kind": kind.to_string(), "first_bytes": first, "bytes": each, "counted": counted,
        }));
    }
    let method = format!(
        "Growth of the process's PSS with all slots taken: for each of the first {count} \
         connections of a kind, and for each of\nas many further ones. counted: the gateway's own \
         number for the latter (`memory.used`)."
    );
    Report { table, method, json: json!({ "costs": list }), broken: Vec::new() }
}

/// The memory that a gateway holds for one connection of a kind, in bytes.
struct Cost {
    /// The memory of each of the first connections, in bytes. They are opened when the gateway has
    /// none.
    first: f64,
    /// The memory of each further connection, opened while the first ones are open, in bytes.
    each: f64,
    /// The gateway's own count for each of the further connections, in bytes; `None` if it reports
    /// none.
    counted: Option<f64>,
}

fn cost(kind: ConnectionKind, programs: &Programs, count: u32) -> io::Result<Cost> {
    let upstream = Upstream::start()?;
    let front = if kind.is_tls() { Front::Tls } else { Front::Http1 };
    let waiting = Some(if kind == ConnectionKind::Refused { 1 } else { 100_000 });
    let slots = if kind.needs_slot() { 1024 } else { 1 };
    let setup = Setup { front, connections: 2 * count + 500, waiting, ..Setup::default() };
    let plan = Plan::new(
        peer::PeerKind::Bywash,
        Task::Forward { limit: slots },
        upstream.port(),
        programs,
    );
    let proxy = Plan { setup, core: Some(PROXY_CORE), ..plan }.start()?;
    let _warm: Vec<Hostile> = open(&proxy, kind, 20)?;
    let _held =
        if kind.needs_slot() { Vec::new() } else { open(&proxy, ConnectionKind::Holder, 2)? };
    thread::sleep(SETTLE);
    let used = || proxy.status("memory/used").ok().map(|bytes| bytes as f64);
    let memory = || procfs::memory(proxy.pid()).map(|bytes| bytes as f64);
    let base = memory()?;
    let _first = open(&proxy, kind, count as usize)?;
    thread::sleep(SETTLE);
    let (before, counted) = (memory()?, used());
    let _more = open(&proxy, kind, count as usize)?;
    thread::sleep(SETTLE);
    let each = |from: f64, to: f64| (to - from) / f64::from(count);
    Ok(Cost {
        first: each(base, before),
        each: each(before, memory()?),
        counted: used().zip(counted).map(|(now, before)| each(before, now)),
    })
}

fn open(proxy: &Proxy, kind: ConnectionKind, count: usize) -> io::Result<Vec<Hostile>> {
    (0..count).map(|n| Hostile::open(kind, n, proxy.port())).collect()
}
