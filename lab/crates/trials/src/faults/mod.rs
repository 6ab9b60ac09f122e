//! `survival faults`: lets the upstream fail in every way that `fault.rs` lists, and the machine in
//! some ways. For each fault, it measures which results clients got, whether every slot was freed,
//! and how soon service was normal again.
//!
//! Each fault has its own run of the gateway, and happens in the middle of a steady open loop.
//! `test_bed.rs` causes the fault, and this module evaluates the results.

mod fault;
mod test_bed;

use bywash_harness::machine::LOAD_CORE;
use bywash_harness::open_loop::{self, Answer, End};
use bywash_harness::peer::PeerKind;
use bywash_harness::proxy::Proxy;
use bywash_harness::report::{Bench, Common, Report, not_available};
use bywash_harness::sys;
use bywash_harness::table::Table;
use fault::Fault;
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use test_bed::Seen;

/// Faults to cause
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Cause only this fault; may be repeated
    #[arg(long, value_enum)]
    fault: Vec<Fault>,
}

/// Promised maximum time from the end of a fault to normal service.
const BACK: Duration = Duration::from_secs(2);
/// Length of normal service without interruption that counts as recovered.
const CALM: Duration = Duration::from_secs(1);
/// Interval between the moments that are tested as the beginning of normal service.
const STEP: Duration = Duration::from_millis(50);
/// Time after the last answer within which all slots must become free.
const IDLE: Duration = Duration::from_secs(3);

/// The result of one fault.
struct Row {
    fault: Fault,
    /// The outcomes of the requests that were due during the fault.
    during: Vec<Answer>,
    /// The first outcome in `during` that the fault does not allow, among those of requests that
    /// ended before the fault did; `None` if there is none.
    odd: Option<End>,
    after: Vec<Answer>,
    back: Option<Duration>,
    /// The number of requests that still hold a slot or wait although no client is left; `None` if
    /// the gateway does not report it.
    left: Option<u64>,
    note: String,
    /// The reason why the result in `note` is wrong; `None` if it is right.
    broken: Option<String>,
}

/// Causes all selected faults and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    sys::raise_descriptor_limit()?;
    let programs = &options.common.programs;
    let bench = Bench::set(&[PeerKind::Bywash], programs);
    sys::pin_to(LOAD_CORE)?;
    let faults = if options.fault.is_empty() { &Fault::ALL[..] } else { &options.fault };
    let mut rows = Vec::new();
    for &fault in faults.iter().filter(|_| bench.kinds().count() > 0) {
        eprintln!("fault: {fault}");
        match test_bed::run(fault, programs) {
            Ok(seen) => rows.push(Row::new(fault, seen)),
            Err(e) => not_available(&fault.to_string(), &e.to_string()),
        }
    }
    bench.publish(&[report(&rows)], &options.common)
}

impl Row {
    fn new(fault: Fault, seen: Seen) -> Self {
        let Seen { answers, calm, period, proxy, note, broken } = seen;
        let part = |from, to| open_loop::within(&answers, from, to);
        let normal = Normal::of(&part(calm.start, calm.end));
        let (during, after) = (part(period.start, period.end), part(period.end, Duration::MAX));
        let is_odd =
            |answer: &&Answer| answer.due + answer.took < period.end && !fault.allows(answer.end);
        Self {
            fault,
            odd: during.iter().find(is_odd).map(|answer| answer.end),
            during,
            back: normal.and_then(|normal| normal.back(&after, period.end)),
            after,
            left: left(&proxy),
            note,
            broken,
        }
    }
}

/// The limit up to which a response time counts as normal.
#[derive(Debug, Clone, Copy)]
struct Normal {
    most: Duration,
}

impl Normal {
    /// Computes the limit from the answers before the fault: it is somewhat above the 99th
    /// percentile of their response times. Returns `None` if no request was answered.
    fn of(calm: &[Answer]) -> Option<Self> {
        let p99 = Duration::from_secs_f64(open_loop::percentile_us(calm, 0.99)? / 1e6);
        Some(Self { most: (p99 * 3).max(p99 + Duration::from_millis(50)) })
    }

    fn is(self, answer: &Answer) -> bool {
        answer.end == End::Status(200) && answer.took <= self.most
    }

    /// Returns the time from `end`, the end of the fault, until normal service begins; `None` if it
    /// does not begin.
    fn back(self, after: &[Answer], end: Duration) -> Option<Duration> {
        let last = after.iter().map(|answer| answer.due).max()?;
        let starts = (0..).map(|n| end + STEP * n).take_while(|start| *start + CALM <= last);
        let is_calm = |start: &Duration| {
            let part = open_loop::within(after, *start, *start + CALM);
            !part.is_empty() && part.iter().all(|answer| self.is(answer))
        };
        starts.into_iter().find(is_calm).map(|start| start.saturating_sub(end))
    }
}

/// Returns the number of requests that the gateway still has, after it had the time [`IDLE`] to
/// release them. Returns `None` if the gateway does not report it.
fn left(proxy: &Proxy) -> Option<u64> {
    let start = Instant::now();
    loop {
        let left = proxy.status("running").and_then(|n| Ok(n + proxy.status("waiting")?));
        if start.elapsed() > IDLE || left.as_ref().is_ok_and(|left| *left == 0) {
            return left.ok();
        }
        thread::sleep(STEP);
    }
}

fn report(rows: &[Row]) -> Report {
    let head = ["fault", "answers during", "answers after", "note", "left", "normal after s"];
    let (mut table, mut list, mut broken) = (Table::new(4, &head), Vec::new(), Vec::new());
    for row in rows {
        table.row(vec![
            row.fault.to_string(),
            open_loop::show_ends(&row.during),
            open_loop::show_ends(&row.after),
            row.note.clone(),
            row.left.map_or("?".into(), |left| left.to_string()),
            row.back.map_or("never".into(), |back| format!("{:.1}", back.as_secs_f64())),
        ]);
        list.push(row.json());
        broken.extend(row.broken());
    }
    let method = format!(
        "{}\nleft (column): requests that still hold a slot or wait when all clients have left. \
         normal after: from the end of the fault\nuntil a second begins in which all requests are \
         answered with 200 about as fast as before. cut: the connection ended\nwithin an answer. \
         left (answers): the client ran out of patience.",
        test_bed::METHOD
    );
    Report { table, method, json: json!({ "faults": list }), broken }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "fault": self.fault.to_string(), "during": open_loop::show_ends(&self.during),
            "after": open_loop::show_ends(&self.after), "note": self.note, "left": self.left,
            "normal_after_s": self.back.map(|back| back.as_secs_f64()),
        })
    }

    fn broken(&self) -> Vec<String> {
        let name = self.fault;
        let late = self.back.is_none_or(|back| back > BACK);
        let own = self.broken.iter().map(|what| format!("{name}: {what}"));
        let common = [
            self.odd.map(|end| format!("{name}: an answer was {end}")),
            (self.left != Some(0))
                .then(|| format!("{name}: slots or places in the queue did not become free again")),
            late.then(|| format!("{name}: not normal after {} s", BACK.as_secs())),
        ];
        common.into_iter().flatten().chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(from_ms: u64, to_ms: u64, took_ms: u64, end: End) -> Vec<Answer> {
        let answer = |due| Answer {
            due: Duration::from_millis(due),
            late: Duration::ZERO,
            took: Duration::from_millis(took_ms),
            end,
        };
        (from_ms..to_ms).step_by(10).map(answer).collect()
    }

    #[test]
    fn normal_begins_with_the_first_whole_second_of_normal_answers() {
        let normal = Normal::of(&answers(0, 1000, 10, End::Status(200))).unwrap();
        let end = Duration::from_secs(2);
        let after = [
            answers(2000, 2300, 10, End::Status(502)),
            answers(2300, 2700, 400, End::Status(200)),
            answers(2700, 5000, 12, End::Status(200)),
        ]
        .concat();
        assert_eq!(normal.back(&after, end), Some(Duration::from_millis(700)));
        assert_eq!(normal.back(&answers(2000, 5000, 10, End::Lost), end), None);
        assert!(Normal::of(&answers(0, 1000, 10, End::Lost)).is_none());
    }
}
