//! Opens more connections than the process under test has descriptors for. During that time the
//! process may be unable to accept connections, but must not spin, stop answering or crash.

use bywash_harness::client_socket;
use bywash_harness::confine::Confinement;
use bywash_harness::http;
use bywash_harness::machine::PROXY_CORE;
use bywash_harness::peer::{PeerKind, Programs, Task};
use bywash_harness::procfs;
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Report, not_available};
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const DESCRIPTORS: u32 = 256;
const CONNECTIONS: usize = 500;
/// Promised maximum CPU use while the process has no descriptors left, as a fraction of a core.
const BUSY: f64 = 0.1;
/// Promised maximum time from the clients' departure until service is normal.
const RECOVERED: Duration = Duration::from_secs(2);
/// Time that the process gets to accept as many connections as possible.
const SETTLE: Duration = Duration::from_secs(1);
/// Length of the CPU measurement while the process has no descriptors left.
const STARVED: Duration = Duration::from_secs(5);
/// Time after which the process counts as not recovered, if no new client is served.
const BOUND: Duration = Duration::from_secs(10);

/// The result of one program.
struct Row {
    kind: PeerKind,
    served: usize,
    /// CPU time that the process used without descriptors, as a fraction of a core.
    busy: f64,
    /// Response time of bywash's admin listener while there are no descriptors left; `None` for
    /// other programs.
    admin: Option<io::Result<Duration>>,
    alive: bool,
    recovered: Option<Duration>,
}

/// Measures each program of `kinds`.
pub(super) fn measure(kinds: &[PeerKind], programs: &Programs) -> io::Result<Report> {
    let mut rows = Vec::new();
    for &kind in kinds {
        eprintln!("descriptors: {kind}");
        let upstream = Upstream::start()?;
        let confinement = Confinement { descriptors: Some(DESCRIPTORS), ..Confinement::default() };
        let plan = Plan::new(kind, Task::Forward { limit: 16 }, upstream.port(), programs);
        match (Plan { core: Some(PROXY_CORE), confinement, ..plan }).start() {
            Ok(proxy) => rows.push(starve(&proxy)?),
            Err(e) => not_available(&format!("descriptors, {kind}"), &e.to_string()),
        }
    }
    Ok(report(&rows))
}

fn starve(proxy: &Proxy) -> io::Result<Row> {
    if recover(proxy).is_none() {
        return Err(io::Error::other(format!("{} does not serve before the flood", proxy.kind())));
    }
    let mut clients = Vec::new();
    for n in 0..CONNECTIONS {
        let mut client =
            client_socket::begin_connect(client_socket::address(n / 50), proxy.port())?;
        // A client that is not connected yet sends nothing. That makes no difference here.
        let _ = client.write(http::get("/item").as_bytes());
        clients.push(client);
    }
    thread::sleep(SETTLE);
    let (start, before) = (Instant::now(), procfs::cpu_ticks(proxy.pid()));
    thread::sleep(STARVED);
    let after = procfs::cpu_ticks(proxy.pid());
    let busy = match (before, after) {
        (Ok(before), Ok(after)) => {
            let ticks = (after.user + after.system) - (before.user + before.system);
            procfs::micros(ticks) / 1e6 / start.elapsed().as_secs_f64()
        }
        _ => 0.0, // the process has ended, as the row shows
    };
    let asked = Instant::now();
    let is_product = proxy.kind() == PeerKind::Bywash;
    let admin = is_product.then(|| proxy.status("connections").map(|_| asked.elapsed()));
    let served = clients.iter_mut().filter_map(|client| http::read_answer(client).ok()).count();
    drop(clients);
    let recovered = recover(proxy);
    if !proxy.is_alive() {
        eprintln!("{} ended; its log:\n{}", proxy.kind(), proxy.log().trim_end());
    }
    Ok(Row { kind: proxy.kind(), served, busy, admin, alive: proxy.is_alive(), recovered })
}

/// Returns the time until a new client is served; `None` if none is served within [`BOUND`].
fn recover(proxy: &Proxy) -> Option<Duration> {
    let start = Instant::now();
    while start.elapsed() < BOUND {
        if ask(proxy).is_ok() {
            return Some(start.elapsed());
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

fn ask(proxy: &Proxy) -> io::Result<()> {
    let mut client: TcpStream = proxy.connect()?;
    client.set_read_timeout(Some(Duration::from_millis(500)))?;
    client.write_all(http::get("/item").as_bytes())?;
    http::expect_200(&mut client).map(drop)
}

fn report(rows: &[Row]) -> Report {
    let head = ["proxy", "alive", "served", "CPU while starved", "admin ms", "served again ms"];
    let (mut table, mut list) = (Table::new(2, &head), Vec::new());
    for row in rows {
        let millis = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
        let admin = match &row.admin {
            None => "-".to_owned(),
            Some(Ok(time)) => millis(*time),
            Some(Err(_)) => "no answer".to_owned(),
        };
        table.row(vec![
            row.kind.to_string(),
            if row.alive { "yes" } else { "no" }.to_owned(),
            format!("{} of {CONNECTIONS}", row.served),
            format!("{:.1} %", row.busy * 100.0),
            admin,
            row.recovered.map_or("never".into(), millis),
        ]);
        list.push(row.json());
    }
    let method = format!(
        "{DESCRIPTORS} descriptors; {CONNECTIONS} connections, each with a request, stay open. \
         CPU: over {} s of that time. served again: time until a new client is served after they \
         have closed.",
        STARVED.as_secs()
    );
    let own = rows.iter().filter(|row| row.kind == PeerKind::Bywash);
    let broken = own.flat_map(Row::broken).collect();
    Report { table, method, json: json!({ "descriptors": list }), broken }
}

impl Row {
    fn admin_s(&self) -> Option<f64> {
        let time = self.admin.as_ref()?.as_ref().ok()?;
        Some(time.as_secs_f64())
    }

    fn json(&self) -> Value {
        json!({
            "proxy": self.kind.to_string(), "alive": self.alive, "served": self.served,
            "busy": self.busy, "admin_s": self.admin_s(),
            "served_again_s": self.recovered.map(|time| time.as_secs_f64()),
        })
    }

    fn broken(&self) -> Vec<String> {
        let late = self.recovered.is_none_or(|time| time > RECOVERED);
        [
            (!self.alive).then_some("few descriptors: the gateway ended"),
            (self.busy > BUSY).then_some("few descriptors: the gateway uses the CPU without work"),
            self.admin_s()
                .is_none()
                .then_some("few descriptors: the admin listener does not answer"),
            late.then_some("few descriptors: the gateway does not serve again in time"),
        ]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect()
    }
}
