//! Floods of HTTP/2 frames on one connection. Measures how many frames a server reads before it
//! closes the connection, and how much memory and CPU time they cost.
//!
//! Rapid reset is CVE-2023-44487. CVE-2025-8671 is its reverse: the client sends an error after
//! each request, and so makes the server reset the stream. CONTINUATION is CVE-2024-27316.
//! SETTINGS, PING and empty DATA are CVE-2019-9515, -9512 and -9518.

use super::client::{Client, STALLED, Stop};
use bywash_harness::h2::{self, Frame, Method, frame, kind};
use bywash_harness::machine::PROXY_CORE;
use bywash_harness::peer::{Front, PeerKind, Programs, Setup, Task};
use bywash_harness::procfs;
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Report, not_available};
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use serde_json::{Value, json};
use std::io;
use std::thread;
use std::time::Duration;

/// Maximum total number of requests that may reach the upstream during a flood with resets.
const AT_UPSTREAM: u64 = 100;
/// Number of units (repeated frames) that are sent between two checks whether the server still
/// reads.
const STRETCH: u32 = 256;
/// Pause between the last sent request and the count of requests at the upstream. In this pause,
/// sent requests still reach the upstream.
const SETTLE: Duration = Duration::from_millis(500);

/// One kind of flood.
#[derive(Clone, Copy)]
struct Flood {
    name: &'static str,
    /// Returns the bytes that the client sends once, after the connection preface.
    opening: fn() -> Vec<u8>,
    /// Returns the bytes of the repeated unit with the given index, from 0.
    unit: fn(u32) -> Vec<u8>,
    /// Maximum number of units to send.
    most: u32,
    /// Number of units in one write.
    batch: u32,
    /// When the client checks whether the server still reads.
    check: Check,
    /// Whether the flood sends requests and has them reset, so that few of them should reach the
    /// upstream.
    resets: bool,
}

/// When the client checks whether the server still reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// After each [`STRETCH`], the client waits for the answer to a PING. The answer shows that the
    /// server has read everything.
    Often,
    /// The client waits for the answer to a PING only at the end, because waiting earlier would
    /// weaken the flood.
    AtEnd,
    /// After each [`STRETCH`], the client pauses for a moment, because a PING must not interrupt a
    /// head. At the end, the client ends the head and sends a PING.
    InHead,
}

const FLOODS: [Flood; 11] = [
    resets("HEADERS + RST_STREAM", 64, |n| [head(n), reset(stream(n))].concat()),
    resets("HEADERS, next with RST_STREAM", 1, |n| {
        let before = n.checked_sub(1).map(|n| reset(stream(n)));
        [before.unwrap_or_default(), head(n)].concat()
    }),
    resets("HEADERS + a mistake", 64, |n| [head(n), mistake(stream(n))].concat()),
    of_head("CONTINUATION, 64 bytes", |_| {
        frame(kind::CONTINUATION, 0, 1, &h2::field("x-flood", &"a".repeat(54)))
    }),
    of_head("CONTINUATION, empty", |_| frame(kind::CONTINUATION, 0, 1, b"")),
    flood("SETTINGS", Vec::new, settings),
    unread("SETTINGS, answers unread", settings),
    flood("PING", Vec::new, ping),
    unread("PING, answers unread", ping),
    flood("DATA, empty", begun_post, |_| frame(kind::DATA, 0, 1, b"")),
    Flood {
        most: 60_000, // the initial window is 65,535 bytes
        ..flood("DATA, 1 byte", begun_post, |_| frame(kind::DATA, 0, 1, b"x"))
    },
];

const fn flood(name: &'static str, opening: fn() -> Vec<u8>, unit: fn(u32) -> Vec<u8>) -> Flood {
    let (most, batch, check) = (100_000, 64, Check::Often);
    Flood { name, opening, unit, most, batch, check, resets: false }
}

const fn resets(name: &'static str, batch: u32, unit: fn(u32) -> Vec<u8>) -> Flood {
    let check = Check::AtEnd;
    Flood { most: 3000, batch, check, resets: true, ..flood(name, Vec::new, unit) }
}

const fn of_head(name: &'static str, unit: fn(u32) -> Vec<u8>) -> Flood {
    Flood { check: Check::InHead, ..flood(name, begun_head, unit) }
}

/// Returns a flood whose answers exceed the kernel's buffers while the client reads nothing. The
/// server has to buffer the rest itself.
const fn unread(name: &'static str, unit: fn(u32) -> Vec<u8>) -> Flood {
    Flood { check: Check::AtEnd, most: 500_000, ..flood(name, Vec::new, unit) }
}

fn stream(n: u32) -> u32 {
    2 * n + 1
}

fn head(n: u32) -> Vec<u8> {
    let block = h2::request(Method::Get, "/item");
    frame(kind::HEADERS, h2::END_HEADERS | h2::END_STREAM, stream(n), &block)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes()) // CANCEL
}

/// Returns a `WINDOW_UPDATE` with an increment of 0, which makes the server reset the stream (RFC
/// 9113 §6.9).
fn mistake(stream: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &[0; 4])
}

fn begun_head() -> Vec<u8> {
    frame(kind::HEADERS, h2::END_STREAM, 1, &h2::request(Method::Get, "/item"))
}

fn begun_post() -> Vec<u8> {
    frame(kind::HEADERS, h2::END_HEADERS, 1, &h2::request(Method::Post, "/hold"))
}

fn settings(_: u32) -> Vec<u8> {
    frame(kind::SETTINGS, 0, 0, b"")
}

fn ping(n: u32) -> Vec<u8> {
    frame(kind::PING, 0, 0, &u64::from(n).to_be_bytes())
}

/// The result of one flood.
struct Row {
    kind: PeerKind,
    flood: &'static Flood,
    sent: u32,
    stop: Stop,
    at_upstream: u64,
    cpu_ms: f64,
    /// Growth of the process's memory from before the flood to its end, in bytes.
    grown: i64,
    /// Whether another client is served after the flood.
    serves: bool,
}

/// Measures each flood with each program of `kinds`, and returns the report.
pub(super) fn measure(kinds: &[PeerKind], programs: &Programs) -> io::Result<Report> {
    let mut rows = Vec::new();
    for &kind in kinds {
        let upstream = Upstream::start()?;
        let setup = Setup { front: Front::Http2, ..Setup::default() };
        let plan = Plan::new(kind, Task::Forward { limit: 1024 }, upstream.port(), programs);
        let proxy = (Plan { setup, core: Some(PROXY_CORE), ..plan }).start()?;
        if !serves(&proxy)? {
            not_available(&format!("frames, {kind}"), "no HTTP/2 in clear");
            continue;
        }
        for flood in &FLOODS {
            eprintln!("frames: {kind}, {}", flood.name);
            rows.push(pour(flood, &proxy, &upstream)?);
        }
    }
    Ok(report(&rows))
}

fn pour(flood: &'static Flood, proxy: &Proxy, upstream: &Upstream) -> io::Result<Row> {
    let requests = upstream.requests();
    let memory = procfs::memory(proxy.pid())?;
    let cpu = procfs::cpu_ticks(proxy.pid())?;
    let mut client = Client::connect(proxy)?;
    let (sent, stop) = send(flood, &mut client)?;
    thread::sleep(SETTLE);
    let now = procfs::cpu_ticks(proxy.pid())?;
    let ticks = (now.user + now.system) - (cpu.user + cpu.system);
    let grown = procfs::memory(proxy.pid())?.cast_signed() - memory.cast_signed();
    let at_upstream = upstream.requests() - requests;
    drop(client);
    let (kind, cpu_ms) = (proxy.kind(), procfs::micros(ticks) / 1e3);
    Ok(Row { kind, flood, sent, stop, at_upstream, cpu_ms, grown, serves: serves(proxy)? })
}

/// Sends the flood. Returns the number of units sent, and the reason why the flood stopped.
fn send(flood: &Flood, client: &mut Client) -> io::Result<(u32, Stop)> {
    if flood.check == Check::AtEnd {
        client.take_little()?;
    }
    let mut sent = 0;
    let mut stop = client.send(&(flood.opening)())?;
    while sent < flood.most && stop.is_none() {
        let batch: Vec<u8> = (sent..sent + flood.batch).flat_map(flood.unit).collect();
        stop = client.send(&batch)?;
        sent += flood.batch;
        if sent.is_multiple_of(STRETCH) && stop.is_none() {
            stop = check(flood.check, client)?;
        }
    }
    if stop.is_none() && flood.check == Check::InHead {
        stop = client.send(&frame(kind::CONTINUATION, h2::END_HEADERS, 1, b""))?;
    }
    let stop = match stop {
        Some(stop) => stop,
        None => client.check_all_read()?.unwrap_or(Stop::Nothing),
    };
    Ok((sent, stop))
}

fn check(how: Check, client: &mut Client) -> io::Result<Option<Stop>> {
    match how {
        Check::Often => client.check_all_read(),
        Check::AtEnd => Ok(None),
        Check::InHead => {
            let read = client.read_until(Duration::from_millis(2), |_| false)?;
            Ok(read.filter(|stop| *stop != Stop::Stalled))
        }
    }
}

/// Returns whether a request of another client is answered with status 200.
fn serves(proxy: &Proxy) -> io::Result<bool> {
    let is_answer =
        |frame: &Frame| frame.kind == kind::HEADERS && frame.payload.contains(&STATUS_200);
    let mut client = Client::connect(proxy)?;
    Ok(client.send(&head(0))?.is_none() && client.read_until(STALLED, is_answer)?.is_none())
}

/// HPACK representation of `:status: 200`: an indexed field of the static table.
const STATUS_200: u8 = 0x88;

fn report(rows: &[Row]) -> Report {
    let head =
        ["flood", "proxy", "stopped by", "frames", "at upstream", "CPU ms", "KiB more", "serves"];
    let (mut table, mut list) = (Table::new(3, &head), Vec::new());
    for row in rows {
        let at_upstream =
            if row.flood.resets { row.at_upstream.to_string() } else { "-".to_owned() };
        table.row(vec![
            row.flood.name.to_owned(),
            row.kind.to_string(),
            row.stop.to_string(),
            row.sent.min(row.flood.most).to_string(),
            at_upstream,
            format!("{:.0}", row.cpu_ms),
            (row.grown / 1024).to_string(),
            if row.serves { "yes" } else { "no" }.to_owned(),
        ]);
        list.push(row.json());
    }
    let method = format!(
        "One HTTP/2 connection without TLS; frames are sent as fast as the program reads them. \
         frames: repetitions sent until the\nclient saw the connection close, to within {STRETCH}. \
         nothing: the program read everything. at upstream: requests that\narrived there. KiB \
         more: growth of PSS at the end. serves: whether another client is served afterwards."
    );
    let own = rows.iter().filter(|row| row.kind == PeerKind::Bywash);
    Report {
        table,
        method,
        json: json!({ "frames": list }),
        broken: own.flat_map(Row::broken).collect(),
    }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "flood": self.flood.name, "proxy": self.kind.to_string(),
            "stopped_by": self.stop.to_string(), "frames": self.sent.min(self.flood.most),
            "at_upstream": self.flood.resets.then_some(self.at_upstream), "cpu_ms": self.cpu_ms,
            "grown_bytes": self.grown, "serves": self.serves,
        })
    }

    fn broken(&self) -> Vec<String> {
        let (name, at) = (self.flood.name, self.at_upstream);
        let reached = self.flood.resets && at > AT_UPSTREAM;
        [
            (reached, format!("{name}: {at} requests reached the upstream")),
            (
                !self.flood.resets && self.stop == Stop::Nothing,
                format!("{name}: the gateway did not stop the flood"),
            ),
            (!self.serves, format!("{name}: no client is served afterwards")),
        ]
        .into_iter()
        .filter_map(|(is_broken, promise)| is_broken.then_some(promise))
        .collect()
    }
}
