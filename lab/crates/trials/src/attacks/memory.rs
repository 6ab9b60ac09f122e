//! An attack on the memory. Many kinds of connections make a proxy hold memory, while 50 good
//! clients send requests. The proxy runs in a control group of 256 MiB.

use super::attacker::{Attacker, FIRST, HalfHandshake, LARGE, Script, Scripted};
use super::honest::VISITORS;
use super::pool::{Attack, Open, Pool};
use super::pressure::PATIENCE;
use super::streams::{Slow, Streams};
use super::target::Target;
use super::texts::Ports;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bywash_harness::confine::OwnedGroup;
use bywash_harness::http;
use bywash_harness::open_loop::{self, Load, Phase, Reuse};
use bywash_harness::{procfs, tls};

/// Maximum memory of a program under attack, in bytes.
pub(super) const MOST: u64 = 256 << 20;
const CLIENTS: usize = 50;
const RATE: f64 = 50.0;
/// Time for which the good clients run before the attack.
const BEFORE: Duration = Duration::from_secs(1);
/// Time to open all connections of the attack, at a rate of at most 3,333 per second.
const OPENING: Duration = Duration::from_secs(3);

/// A selection of kinds of attacking connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kinds {
    /// Half request heads, bodies whose answer is not read, and open chunks. They cost a proxy the
    /// most memory.
    Bodies,
    /// The connections of `Bodies`, plus waiting bodies, idle connections, half TLS handshakes and
    /// HTTP/2 streams.
    Every,
}

/// Attacks `target` with `connections` connections for `length`, and returns four values:
///
/// 1. 1 if the program survived, otherwise 0;
/// 2. the program's peak memory in MiB;
/// 3. the 99th percentile of the good clients' response times in ms, `NaN` if none was served;
/// 4. the fraction of the good clients' requests that were served.
pub(super) fn measure(
    target: &Target,
    group: Option<&OwnedGroup>,
    (kinds, connections): (Kinds, usize),
    length: Duration,
) -> io::Result<Vec<f64>> {
    let whole = BEFORE + OPENING + length;
    let load = Load {
        port: target.ports().http,
        phases: vec![Phase::new(RATE, whole)],
        patience: PATIENCE,
        reuse: Reuse::Turns(CLIENTS),
        sources: VISITORS.start..VISITORS.start + CLIENTS,
    };
    let running = load.start();
    running.wait_until(BEFORE);
    let attack = Attack {
        connections,
        addresses: 1000,
        period: Duration::from_secs(1),
        opening: OPENING,
        open: opener(kinds, target.ports())?,
    };
    let pool = Pool::start(&attack);
    running.wait_until(whole);
    let open = pool.open()?;
    let (is_alive, own) = (target.is_alive(), procfs::peak_memory(target.pid()).unwrap_or(0));
    drop(pool);
    let answers = open_loop::within(&running.finish()?, BEFORE, whole);
    let peak = group.and_then(OwnedGroup::most).unwrap_or(own);
    // Without a control group no process is killed, so the peak must stay below the limit instead.
    // A process whose memory can no longer be read is about to end.
    let survived = is_alive && own > 0 && (group.is_some() || own <= MOST);
    eprintln!(
        "  {open} hostile connections open at the end; peak memory of the process {} MiB; good \
         clients {}",
        own >> 20,
        open_loop::show_ends(&answers)
    );
    let p99 = open_loop::percentile_us(&answers, 0.99).map_or(f64::NAN, |us| us / 1e3);
    let served = open_loop::goodput(&answers).unwrap_or(0.0);
    Ok(vec![if survived { 1.0 } else { 0.0 }, peak as f64 / f64::from(1 << 20), p99, served])
}

/// Returns a function that opens connections of each kind in `kinds` in turn.
fn opener(kinds: Kinds, ports: Ports) -> io::Result<Open> {
    let client = tls::Client::new()?;
    let scripts = [half_head(), unread_body(), open_chunks(), waiting_body(), Script::idle()];
    let scripts = scripts.map(Arc::new);
    let count = match kinds {
        Kinds::Bodies => 3,
        Kinds::Every => 7,
    };
    Ok(Arc::new(move |number, source| -> io::Result<Box<dyn Attacker>> {
        Ok(match number % count {
            5 => Box::new(HalfHandshake::open(source, ports.https, &client)?),
            6 => Box::new(Streams::open(source, ports.h2c, Slow::Upload(6000), 10)?),
            kind => Box::new(Scripted::open(source, ports.http, &scripts[kind])?),
        })
    }))
}

/// Returns the script of a request head of 8 KB that does not end.
fn half_head() -> Script {
    let opening = format!("GET / HTTP/1.1\r\nHost: bench.test\r\nX-Long: {}", "a".repeat(8000));
    Script { opening: opening.into_bytes(), drip: b"a".to_vec(), take: 1024, ..Script::default() }
}

/// Returns the script of a request with 300 KB of a large body, whose answer is not read.
fn unread_body() -> Script {
    let head = http::post("/upload", &format!("Content-Length: {LARGE}\r\n")).into_bytes();
    Script { opening: [head, vec![b'x'; FIRST]].concat(), ..Script::default() }
}

/// Returns the script of a request with a body of 100 KB, of which 32 KB are sent at once and the
/// rest slowly.
fn waiting_body() -> Script {
    let head = http::post("/upload", "Content-Length: 100000\r\n").into_bytes();
    let opening = [head, vec![b'x'; 32_000]].concat();
    Script { opening, drip: vec![b'x'; 700], take: 1024, ..Script::default() }
}

/// Returns the script of a request that announces a chunk and does not complete it.
fn open_chunks() -> Script {
    let head = http::post("/upload", "Transfer-Encoding: chunked\r\n").into_bytes();
    let opening = [head, b"ffff0\r\n".to_vec(), vec![b'x'; 60_000]].concat();
    Script { opening, drip: vec![b'x'; 700], take: 1024, ..Script::default() }
}
