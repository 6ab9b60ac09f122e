//! A restart after `kill -9`: measures how soon a new process, which a simple loop starts, accepts
//! connections and serves requests.

use bywash_harness::http;
use bywash_harness::machine::PROXY_CORE;
use bywash_harness::peer::{PeerKind, Programs, Task};
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Report, not_available};
use bywash_harness::stats::Spread;
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use serde_json::json;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Promised maximum of the median time until bywash accepts connections, in milliseconds.
const ACCEPTS: f64 = 50.0;
/// Time limit for a restart to serve a request.
const BOUND: Duration = Duration::from_secs(10);
/// Pause between two attempts to connect.
const LOOK: Duration = Duration::from_micros(200);

/// The results of one program: times in milliseconds from the start of the new process.
struct Row {
    kind: PeerKind,
    accepts: Vec<f64>,
    answers: Vec<f64>,
}

/// Kills and restarts each program of `kinds`, as often as `times` says, and returns a report of
/// the times to restart.
pub(super) fn measure(kinds: &[PeerKind], programs: &Programs, times: u32) -> io::Result<Report> {
    let upstream = Upstream::start()?;
    let mut rows = Vec::new();
    for &kind in kinds {
        eprintln!("kill: {kind}");
        let plan = Plan::new(kind, Task::Forward { limit: 16 }, upstream.port(), programs);
        let mut proxy = match (Plan { core: Some(PROXY_CORE), ..plan }).start() {
            Ok(proxy) => proxy,
            Err(e) => {
                not_available(&format!("kill, {kind}"), &e.to_string());
                continue;
            }
        };
        let mut row = Row { kind, accepts: Vec::new(), answers: Vec::new() };
        for _ in 0..times {
            row.once(&mut proxy)?;
        }
        rows.push(row);
    }
    Ok(report(&rows, times))
}

impl Row {
    fn once(&mut self, proxy: &mut Proxy) -> io::Result<()> {
        proxy.kill();
        let start = Instant::now();
        proxy.launch()?;
        let millis = || start.elapsed().as_secs_f64() * 1e3;
        let mut client = loop {
            match proxy.connect() {
                Ok(client) => break client,
                Err(_) if start.elapsed() < BOUND => thread::sleep(LOOK),
                Err(e) => return Err(e),
            }
        };
        self.accepts.push(millis());
        client.set_read_timeout(Some(BOUND))?;
        client.write_all(http::get("/item").as_bytes())?;
        http::read_answer(&mut client)?;
        self.answers.push(millis());
        Ok(())
    }
}

fn report(rows: &[Row], times: u32) -> Report {
    let mut table = Table::new(1, &["proxy", "accepts ms", "answers ms"]);
    let (mut list, mut broken) = (Vec::new(), Vec::new());
    for row in rows {
        let spread = |times: &Vec<f64>| Spread::of(times.iter().copied());
        let (accepts, answers) = (spread(&row.accepts), spread(&row.answers));
        let show = |spread: Option<Spread>| spread.map_or("-".into(), |spread| spread.show(1));
        table.row(vec![row.kind.to_string(), show(accepts), show(answers)]);
        list.push(json!({
            "proxy": row.kind.to_string(), "accepts_ms": accepts.map(|spread| spread.json()),
            "answers_ms": answers.map(|spread| spread.json()),
        }));
        if row.kind == PeerKind::Bywash && accepts.is_none_or(|accepts| accepts.median > ACCEPTS) {
            broken.push(format!("killed: accepts after {} ms", show(accepts)));
        }
    }
    let method = format!(
        "kill -9, then a new process. Median [min–max] of {times} times: from the start of the new \
         process to the first accepted\nconnection, and to the first answer, both seen by one \
         client that tries every {} µs.",
        LOOK.as_micros()
    );
    Report { table, method, json: json!({ "killed": list }), broken }
}
