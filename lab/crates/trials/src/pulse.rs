//! `survival pulse`: sends a load of ten times the capacity for a minute, and half the capacity
//! before and after. Measures how soon after the pulse service is as before.
//!
//! An overload that sustains itself outlasts its cause. Examples are a queue full of requests whose
//! clients have left, and slots that were not freed. The results are computed for windows of one
//! second each, as an operator would plot them.

use bywash_harness::machine::{LOAD_CORE, PROXY_CORE};
use bywash_harness::open_loop::{self, Answer, Load, Phase, Reuse};
use bywash_harness::peer::{PeerKind, Programs, Task};
use bywash_harness::proxy::Plan;
use bywash_harness::report::{Bench, Common, Report, not_available};
use bywash_harness::sys;
use bywash_harness::table::Table;
use bywash_harness::upstream::{Behaviour, Upstream};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Length and height of the pulse
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Seconds of the pulse
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Load in the pulse, as a multiple of the capacity
    #[arg(long, default_value_t = 10.0)]
    times: f64,
    /// Measure only this program; may be repeated
    #[arg(long, value_enum)]
    only: Vec<PeerKind>,
}

/// Service time of the upstream. With the concurrency limit, it gives a capacity of 400 requests
/// per second.
const SERVICE: Duration = Duration::from_millis(20);
const LIMIT: u32 = 8;
const CAPACITY: f64 = 400.0;
/// Load before and after the pulse, as a multiple of the capacity.
const CALM: f64 = 0.5;
const BEFORE: Duration = Duration::from_secs(11);
/// Time at the start of the run that is not counted.
const UNCOUNTED: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(30);
/// Time that clients wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
const WINDOW: Duration = Duration::from_secs(1);
/// Promised maximum time from the end of the pulse until service is as before.
const BACK: Duration = Duration::from_secs(10);

/// The result of one program.
struct Row {
    kind: PeerKind,
    /// 99th percentile of the response times before the pulse, in µs.
    base: f64,
    /// The windows of one second each after the pulse, in order.
    after: Vec<Window>,
    /// Outcomes of the requests that were due during the pulse.
    pulse: Vec<Answer>,
    back: Option<Duration>,
}

/// The results of the requests that were due within one second.
struct Window {
    p99: Option<f64>,
    goodput: f64,
}

/// Measures all selected programs and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    sys::raise_descriptor_limit()?;
    let queues = [PeerKind::Bywash, PeerKind::Haproxy, PeerKind::Envoy];
    let kinds = if options.only.is_empty() { &queues[..] } else { &options.only };
    let bench = Bench::set(kinds, &options.common.programs);
    sys::pin_to(LOAD_CORE)?;
    let mut rows = Vec::new();
    for kind in bench.kinds() {
        eprintln!("pulse: {kind}");
        match measure(kind, options, &options.common.programs) {
            Ok(row) => rows.push(row),
            Err(e) => not_available(&kind.to_string(), &e.to_string()),
        }
    }
    bench.publish(&[report(&rows, options)], &options.common)
}

fn measure(kind: PeerKind, options: &Options, programs: &Programs) -> io::Result<Row> {
    let upstream = Upstream::start()?;
    upstream.set_behaviour(Behaviour::After(SERVICE));
    let mut plan = Plan::new(kind, Task::Forward { limit: LIMIT }, upstream.port(), programs);
    plan.core = Some(PROXY_CORE);
    plan.setup.connections = 8000;
    let proxy = plan.start()?;
    let length = Duration::from_secs(options.seconds);
    let phases = vec![
        Phase::new(CAPACITY * CALM, BEFORE),
        Phase::new(CAPACITY * options.times, length),
        Phase::new(CAPACITY * CALM, AFTER),
    ];
    let load =
        Load { port: proxy.port(), phases, patience: PATIENCE, reuse: Reuse::Half, sources: 0..0 };
    let answers = load.start().finish()?;
    let part = |from, to| open_loop::within(&answers, from, to);
    let base = open_loop::percentile_us(&part(UNCOUNTED, BEFORE), 0.99);
    let base = base.ok_or_else(|| io::Error::other("no request was served before the pulse"))?;
    let end = BEFORE + length;
    let starts = (0..AFTER.as_secs() as u32).map(|n| end + WINDOW * n);
    let after: Vec<Window> = starts.map(|at| Window::of(&part(at, at + WINDOW))).collect();
    let back = back(&after, base);
    Ok(Row { kind, base, after, pulse: part(BEFORE, end), back })
}

impl Window {
    fn of(answers: &[Answer]) -> Self {
        let p99 = open_loop::percentile_us(answers, 0.99);
        Self { p99, goodput: open_loop::goodput(answers).unwrap_or_default() }
    }

    /// Returns whether service in the window is as good as before the pulse: no request fails, and
    /// the 99th percentile of response times exceeds `base` by at most 50 % or 10 ms, whichever is
    /// more.
    fn is_as(&self, base: f64) -> bool {
        let most = (base * 1.5).max(base + 10_000.0);
        self.goodput >= 1.0 && self.p99.is_some_and(|p99| p99 <= most)
    }
}

/// Returns the time from the end of the pulse until service is as before; `None` if that does not
/// happen. The time is that of the first good window ([`Window::is_as`]) from which on at least
/// nine windows in ten are good. One bad second in ten is attributed to the machine.
fn back(after: &[Window], base: f64) -> Option<Duration> {
    let normal: Vec<bool> = after.iter().map(|window| window.is_as(base)).collect();
    let holds = |from: &usize| {
        let rest = &normal[*from..];
        normal[*from] && rest.iter().filter(|is| !**is).count() * 10 <= rest.len()
    };
    (0..normal.len()).find(holds).map(|n| WINDOW * n as u32)
}

fn report(rows: &[Row], options: &Options) -> Report {
    let head = [
        "proxy",
        "answers in the pulse",
        "served/s",
        "p99 before ms",
        "1st s after",
        "5th",
        "10th",
        "30th",
        "back after s",
        "load late ms",
    ];
    let (mut table, mut list, mut broken) = (Table::new(2, &head), Vec::new(), Vec::new());
    for row in rows {
        table.row(row.cells(options));
        list.push(row.json());
        let late = row.back.is_none_or(|back| back > BACK);
        if row.kind == PeerKind::Bywash && late {
            broken.push(format!("pulse: service was not as before within {} s", BACK.as_secs()));
        }
    }
    let method = format!(
        "The capacity is {CAPACITY:.0} requests/s ({LIMIT} slots, {} ms). The load is {CALM} of \
         that for {} s, {} × for {} s, and {CALM} for {} s; half on new\nconnections; clients wait \
         {} s. p99: in ms, of served requests, in windows of a second. back: from the end of the \
         pulse\nto the first window from which on service is as before (all served, p99 at most \
         half, or 10 ms, longer).",
        SERVICE.as_millis(),
        BEFORE.as_secs(),
        options.times,
        options.seconds,
        AFTER.as_secs(),
        PATIENCE.as_secs()
    );
    let json = json!({ "times": options.times, "seconds": options.seconds, "pulse": list });
    Report { table, method, json, broken }
}

impl Row {
    fn cells(&self, options: &Options) -> Vec<String> {
        let served = open_loop::goodput(&self.pulse).unwrap_or_default() * self.pulse.len() as f64;
        let window = |n: usize| {
            let p99 = self.after.get(n).and_then(|window| window.p99);
            p99.map_or("-".into(), |us| format!("{:.1}", us / 1e3))
        };
        vec![
            self.kind.to_string(),
            open_loop::show_ends(&self.pulse),
            format!("{:.0}", served / options.seconds as f64),
            format!("{:.1}", self.base / 1e3),
            window(0),
            window(4),
            window(9),
            window(29),
            self.back.map_or("never".into(), |back| back.as_secs().to_string()),
            open_loop::show_late_ms(&self.pulse),
        ]
    }

    fn json(&self) -> Value {
        let after: Vec<Value> = self
            .after
            .iter()
            .map(|window| json!({ "p99_us": window.p99, "goodput": window.goodput }))
            .collect();
        json!({
            "proxy": self.kind.to_string(), "p99_before_us": self.base,
            "pulse": open_loop::show_ends(&self.pulse), "after": after,
            "back_after_s": self.back.map(|back| back.as_secs()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(p99_ms: &[f64]) -> Vec<Window> {
        p99_ms.iter().map(|ms| Window { p99: Some(ms * 1e3), goodput: 1.0 }).collect()
    }

    #[test]
    fn it_is_back_with_the_first_window_after_which_it_stays_so() {
        let base = 25_000.0;
        let calm = vec![26.0; 20];
        let with = |first: &[f64]| windows(&[first, &calm].concat());
        assert_eq!(back(&with(&[900.0, 26.0, 700.0, 600.0, 500.0]), base).unwrap().as_secs(), 5);
        assert_eq!(back(&with(&[]), base), Some(Duration::ZERO));
        assert_eq!(back(&windows(&[900.0; 30]), base), None);
        let refused = Window { p99: Some(base), goodput: 0.9 };
        assert!(!refused.is_as(base));
    }
}
