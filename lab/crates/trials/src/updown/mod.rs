//! `survival updown`: reloads, upgrades and restarts.
//!
//! Reloads (SIGHUP) and upgrades (SIGUSR2) happen while clients use kept and new connections. None
//! of their requests may fail. A change counts only if it has taken effect. A reload has taken
//! effect when the status shows the changed limit. An upgrade has taken effect when another process
//! serves and the old process has ended.

mod clients;
mod restart;

use bywash_harness::machine::{LOAD_CORE, PROXY_CORE};
use bywash_harness::peer::{PeerKind, Programs, Setup, Task};
use bywash_harness::procfs;
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Bench, Common, Report, not_available};
use bywash_harness::stats::percentile;
use bywash_harness::sys::{self, Signal};
use bywash_harness::table::Table;
use bywash_harness::upstream::{Behaviour, Upstream};
use clients::{Clients, Manner, RequestParts};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Number of reloads, upgrades and kills
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Number of reloads
    #[arg(long, default_value_t = 20)]
    reloads: u32,
    /// Number of upgrades to a new process
    #[arg(long, default_value_t = 5)]
    upgrades: u32,
    /// Number of kills of each program
    #[arg(long, default_value_t = 20)]
    kills: u32,
}

/// Service time of the upstream. It is so long that requests are in flight at every change.
const SERVICE: Duration = Duration::from_millis(5);
/// Length of the run without any change, for comparison.
const STEADY: Duration = Duration::from_secs(2);
/// Time from one change to the next.
const BETWEEN: Duration = Duration::from_millis(200);
/// Time limit for a change to take effect.
const BOUND: Duration = Duration::from_secs(5);
/// Time limit for the old process to finish its requests: the grace period of an upgrade, and a
/// little more.
const OLD_ENDS: Duration = Duration::from_secs(40);

/// The clients' results for one kind of change, such as reloads.
struct Row {
    what: &'static str,
    /// Number of changes that took effect, and total number of changes.
    done: (u32, u32),
    asked: Vec<RequestParts>,
    /// Seconds that each change took to take effect.
    took: Vec<f64>,
}

/// Measures all kinds of changes and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    let programs = &options.common.programs;
    let bench = Bench::set(&PeerKind::ALL, programs);
    sys::pin_to(LOAD_CORE)?;
    let kinds: Vec<PeerKind> = bench.kinds().collect();
    let mut reports = Vec::new();
    if kinds.contains(&PeerKind::Bywash) {
        reports.push(report(&replace(options, programs)?));
    }
    reports.push(restart::measure(&kinds, programs, options.kills)?);
    bench.publish(&reports, &options.common)
}

fn replace(options: &Options, programs: &Programs) -> io::Result<Vec<Row>> {
    let upstream = Upstream::start()?;
    upstream.set_behaviour(Behaviour::After(SERVICE));
    let mut rows = Vec::new();
    let (proxy, clients) = set(&upstream, programs)?;
    clients.take();
    thread::sleep(STEADY);
    rows.push(Row { what: "nothing", done: (0, 0), asked: clients.take(), took: Vec::new() });
    drop((clients, proxy));
    for (what, times, change) in [
        ("reload", options.reloads, reload as fn(&mut Proxy, u32) -> io::Result<()>),
        ("upgrade", options.upgrades, upgrade),
    ] {
        let (mut proxy, clients) = set(&upstream, programs)?;
        let mut row = Row { what, done: (0, times), asked: Vec::new(), took: Vec::new() };
        for n in 0..times {
            eprintln!("{what}: {} of {times}", n + 1);
            let start = Instant::now();
            if let Err(e) = change(&mut proxy, n) {
                not_available(what, &e.to_string());
                break;
            }
            row.took.push(start.elapsed().as_secs_f64());
            row.done.0 += 1;
            thread::sleep(BETWEEN);
        }
        row.asked = clients.take();
        rows.extend(Some(row).filter(|row| row.done.0 > 0));
    }
    Ok(rows)
}

fn set(upstream: &Upstream, programs: &Programs) -> io::Result<(Proxy, Clients)> {
    let plan = Plan::new(PeerKind::Bywash, task(0), upstream.port(), programs);
    let proxy = (Plan { core: Some(PROXY_CORE), ..plan }).start()?;
    let clients = Clients::start(proxy.port());
    thread::sleep(BETWEEN);
    Ok((proxy, clients))
}

/// Returns the `n`-th task. Its limit distinguishes the configuration from all others, so that the
/// status shows which one is in effect.
fn task(n: u32) -> Task {
    Task::Forward { limit: 100 + n }
}

fn reload(proxy: &mut Proxy, n: u32) -> io::Result<()> {
    proxy.rewrite(task(n + 1), &Setup::default())?;
    proxy.signal(Signal::Hangup)?;
    wait("the status did not show the new limit in time", BOUND, || {
        if !proxy.is_alive() {
            return Err(io::Error::other("SIGHUP ended the process"));
        }
        // While its listeners are replaced, the gateway may not answer for a moment.
        Ok(proxy.status("limit").is_ok_and(|limit| limit == u64::from(101 + n)))
    })
}

fn upgrade(proxy: &mut Proxy, _: u32) -> io::Result<()> {
    let old = proxy.pid();
    proxy.signal(Signal::Upgrade)?;
    if proxy.wait_successor(BOUND)?.is_none() {
        let what =
            if procfs::is_alive(old) { "started no new process" } else { "ended the process" };
        return Err(io::Error::other(format!("SIGUSR2 {what}")));
    }
    let new = u64::from(proxy.pid());
    wait("the status did not show the new process in time", BOUND, || {
        Ok(proxy.status("pid").is_ok_and(|pid| pid == new))
    })?;
    wait("the old process did not end in time", OLD_ENDS, || {
        Ok(sys::reap(old) || !procfs::is_alive(old))
    })
}

fn wait(what: &str, bound: Duration, is_so: impl Fn() -> io::Result<bool>) -> io::Result<()> {
    let start = Instant::now();
    while start.elapsed() < bound {
        if is_so()? {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err(io::Error::other(what.to_owned()))
}

fn report(rows: &[Row]) -> Report {
    let head =
        ["change", "clients", "changes", "each s", "requests", "failed", "p99 ms", "longest ms"];
    let (mut table, mut list, mut broken) = (Table::new(2, &head), Vec::new(), Vec::new());
    for row in rows {
        for manner in [Manner::Kept, Manner::New] {
            table.row(row.cells(manner));
        }
        list.push(row.json());
        broken.extend(row.broken());
    }
    let method = format!(
        "Four clients use kept connections and four use new ones; {} ms service time. A change \
         counts once it has taken effect. each s: time\nuntil then (an upgrade: until the old \
         process has ended). failed: requests without a complete answer of status 200.",
        SERVICE.as_millis()
    );
    Report { table, method, json: json!({ "replaced": list }), broken }
}

impl Row {
    fn of(&self, manner: Manner) -> impl Iterator<Item = &RequestParts> {
        self.asked.iter().filter(move |asked| asked.manner == manner)
    }

    fn cells(&self, manner: Manner) -> Vec<String> {
        let millis: Vec<f64> = self.of(manner).map(|one| one.took.as_secs_f64() * 1e3).collect();
        let show = |p: f64| percentile(&millis, p).map_or("-".into(), |ms| format!("{ms:.1}"));
        let (done, of) = self.done;
        vec![
            self.what.to_owned(),
            manner.name().to_owned(),
            if of == 0 { "-".to_owned() } else { format!("{done} of {of}") },
            percentile(&self.took, 0.5).map_or("-".into(), |s| format!("{s:.3}")),
            millis.len().to_string(),
            self.failures(manner).len().to_string(),
            show(0.99),
            show(1.0),
        ]
    }

    fn failures(&self, manner: Manner) -> Vec<&str> {
        self.of(manner).filter_map(|asked| asked.failure.as_deref()).collect()
    }

    fn json(&self) -> Value {
        let clients = [Manner::Kept, Manner::New].map(|manner| {
            json!({
                "clients": manner.name(), "requests": self.of(manner).count(),
                "failures": self.failures(manner),
            })
        });
        json!({
            "change": self.what, "done": self.done.0, "wanted": self.done.1,
            "took_s": self.took, "clients": clients,
        })
    }

    fn broken(&self) -> Vec<String> {
        let (done, of) = self.done;
        let mut broken = Vec::new();
        if done < of {
            broken.push(format!("{}: {done} of {of} took effect", self.what));
        }
        for manner in [Manner::Kept, Manner::New] {
            let failures = self.failures(manner);
            if let Some(first) = failures.first() {
                let (count, manner) = (failures.len(), manner.name());
                let what = self.what;
                broken.push(format!("{what}: {count} failed on {manner} connections: {first}"));
            }
        }
        broken
    }
}
