//! Tests of `bywash doctor`: its findings behind fake hops and in front of fake applications.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{Outcome, bywash};
use crate::folder::Folder;
use crate::gateway::Gateway;
use crate::upstream::Upstream;

/// Writes a configuration with `limit` slots for the application at this address, and returns its
/// path.
fn file(folder: &Folder, application: SocketAddr, limit: u32) -> String {
    let text =
        format!("version = 1\n[upstream]\nserver = \"http://{application}\"\nlimit = {limit}\n");
    folder.file("bywash.toml", text)
}

/// Returns an address at which no process listens.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Returns the first finding of the check with this name.
fn finding(outcome: &Outcome, check: &str) -> Value {
    let json = outcome.json();
    let checks = json["checks"].as_array().unwrap();
    checks.iter().find(|one| one["check"] == check).unwrap_or_else(|| panic!("{json:#}")).clone()
}

#[test]
fn every_check_says_what_it_found() {
    let (folder, upstream) = (Folder::new(), Upstream::new());
    let file = file(&folder, upstream.address, 16);
    let outcome = bywash(&["doctor", "--config", &file, "--json"]);
    for check in ["configuration", "certificates", "upstream"] {
        assert_eq!(finding(&outcome, check)["verdict"], "ok", "{check}: {outcome:?}");
    }
    for check in ["clock", "time sync", "accept queue", "files", "cpu", "memory"] {
        assert!(finding(&outcome, check)["found"].is_string(), "{check}: {outcome:?}");
    }
    // These checks send requests, so they run only if the operator asks for them.
    for check in ["front closes", "abandoned work"] {
        assert_eq!(finding(&outcome, check)["verdict"], "unknown", "{check}: {outcome:?}");
    }
    let text = bywash(&["doctor", "--config", &file]);
    let server = format!("http://{}: the name lookup takes", upstream.address);
    assert!(text.out.contains(&server), "{}", text.out);
    let widest = text.out.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{}", text.out);
}

#[test]
fn an_application_that_is_not_there_is_a_problem() {
    let folder = Folder::new();
    let file = file(&folder, free(), 16);
    let outcome = bywash(&["doctor", "--config", &file, "--json"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains("problem"), "{}", outcome.err);
    let found = finding(&outcome, "upstream");
    assert_eq!(found["verdict"], "problem");
    assert!(found["remedy"].as_str().unwrap().contains("no process listens"), "{found}");
}

#[test]
fn a_stop_daemon_and_a_database_that_are_not_there_are_problems() {
    let (folder, upstream) = (Folder::new(), Upstream::new());
    let (socket, database) = (folder.path("stopd.sock"), Upstream::new());
    let text = |database: SocketAddr| {
        format!(
            "version = 1\nupstream.server = \"{}\"\nstopd.socket = \"{socket}\"\n\
             [database.shop]\nserver = \"mysql://stopd@{database}/shop\"\n",
            upstream.url()
        )
    };
    let doctor =
        |text: &str| bywash(&["doctor", "--config", &folder.file("a.toml", text), "--json"]);
    let missing = doctor(&text(free()));
    for check in ["stop daemon", "database"] {
        assert_eq!(finding(&missing, check)["verdict"], "problem", "{missing:?}");
    }
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let there = doctor(&text(database.address));
    assert_eq!(finding(&there, "database")["verdict"], "ok", "{there:?}");
    // No gateway runs. Root may use every socket, so its connection proves nothing.
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    let verdict = if own == 0 { "unknown" } else { "ok" };
    let daemon = finding(&there, "stop daemon");
    assert_eq!(daemon["verdict"], verdict, "{there:?}");
    let found = daemon["found"].as_str().unwrap();
    assert!(found.contains(&format!("accepts connections of the doctor's user, {own}")), "{found}");
}

#[test]
fn without_a_good_file_the_rest_is_looked_at_all_the_same() {
    let folder = Folder::new();
    let file = folder.file("bad.toml", "version = 1\nmode = \"enforec\"\n");
    let outcome = bywash(&["doctor", "--config", &file, "--json"]);
    assert_eq!(outcome.code, Some(1));
    assert_eq!(finding(&outcome, "configuration")["verdict"], "problem");
    assert!(finding(&outcome, "clock")["numbers"]["wall_clock_s"].is_u64());
}

#[test]
fn of_a_running_gateway_its_own_limits_are_looked_at() {
    let (folder, upstream) = (Folder::new(), Upstream::new());
    let gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let text = format!(
        "version = 1\n[listen]\nadmin = \"{}\"\nworkers = 5\n[upstream]\nserver = \"{}\"\n",
        gateway.operators(),
        upstream.url()
    );
    let outcome = bywash(&["doctor", "--json", "--config", &folder.file("a.toml", text)]);
    assert_eq!(finding(&outcome, "gateway")["numbers"]["pid"], gateway.id(), "{outcome:?}");
    // The number is that of the running gateway's workers, not the one in the file for the next
    // start.
    let cores = thread::available_parallelism().unwrap().get();
    assert_eq!(finding(&outcome, "cpu")["numbers"]["workers"], cores, "{outcome:?}");
}

/// Starts a proxy that forwards each connection to `origin`. Its answers have the `Server` field
/// `server`. It forwards the close of a connection only if `passes_closes`.
fn hop(origin: SocketAddr, passes_closes: bool, server: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || forward(client, origin, passes_closes, server));
        }
    });
    address
}

fn forward(mut client: TcpStream, origin: SocketAddr, passes_closes: bool, server: &str) {
    let Ok(mut upstream) = TcpStream::connect(origin) else {
        let _ = client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
        return;
    };
    let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
    thread::spawn(move || {
        let gone = std::io::copy(&mut from, &mut to);
        if passes_closes {
            let _ = gone.and_then(|_| to.shutdown(std::net::Shutdown::Write));
        }
    });
    let mut answer = String::new();
    if upstream.read_to_string(&mut answer).is_ok() {
        let named = answer.replacen("\r\n", &format!("\r\nServer: {server}\r\n"), 1);
        let _ = client.write_all(named.as_bytes());
    }
    // The shutdown ends the connection in both directions. No other thread holds it for long.
    let _ = client.shutdown(std::net::Shutdown::Both);
}

fn through(hop: SocketAddr, origin: SocketAddr) -> Outcome {
    let (folder, upstream) = (Folder::new(), Upstream::new());
    let (front, origin) = (format!("http://{hop}/doctor/"), origin.to_string());
    let file = file(&folder, upstream.address, 16);
    bywash(&["doctor", "--config", &file, "--front", &front, "--origin", &origin, "--json"])
}

#[test]
fn a_hop_that_passes_closes_is_all_right() {
    let origin = free();
    let outcome = through(hop(origin, true, "Caddy"), origin);
    let found = finding(&outcome, "front closes");
    assert_eq!(found["verdict"], "ok", "{found:#}");
    assert_eq!(found["numbers"]["hop"], "Caddy");
    for method in ["get_closed_ms", "post_closed_ms"] {
        assert!(found["numbers"][method].as_f64().unwrap() < 2000.0, "{found:#}");
    }
    // The hop does not forward the address of the client.
    assert_eq!(finding(&outcome, "front fields")["verdict"], "warning");
}

#[test]
fn a_hop_that_hides_closes_is_a_problem_with_its_own_remedy() {
    let origin = free();
    let outcome = through(hop(origin, false, "nginx/1.22.1"), origin);
    assert_eq!(outcome.code, Some(1));
    let found = finding(&outcome, "front closes");
    assert_eq!(found["verdict"], "problem", "{found:#}");
    assert_eq!(found["numbers"]["get_closed_ms"], Value::Null);
    assert!(found["remedy"].as_str().unwrap().contains("proxy_ignore_client_abort"), "{found:#}");
}

#[test]
fn a_hop_that_leads_elsewhere_is_said_to() {
    let origin = free();
    let outcome = through(hop(free(), true, "nginx"), origin);
    let found = finding(&outcome, "front closes");
    assert_eq!(found["verdict"], "problem", "{found:#}");
    assert!(found["found"].as_str().unwrap().contains("answers 502 itself"), "{found:#}");
}

/// Starts an application with `workers` workers, in which each request takes `WORK`. If `notices`,
/// a worker stops working on a request when the client has closed the connection.
fn application(workers: usize, notices: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (enter, waiting): (Sender<TcpStream>, Receiver<TcpStream>) = channel();
    let waiting = Arc::new(Mutex::new(waiting));
    for _ in 0..workers {
        let waiting = Arc::clone(&waiting);
        thread::spawn(move || {
            loop {
                let next = waiting.lock().unwrap().recv();
                let Ok(client) = next else { return };
                work(client, notices);
            }
        });
    }
    thread::spawn(move || listener.incoming().flatten().try_for_each(|one| enter.send(one)));
    address
}

const WORK: Duration = Duration::from_secs(1);

/// Simulates the work on one request by letting time pass. If `notices`, returns early when the
/// client has closed the connection.
fn work(mut client: TcpStream, notices: bool) {
    let end = Instant::now() + WORK;
    let mut request = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        client.set_read_timeout(Some(left)).unwrap();
        match client.read(&mut request) {
            Ok(0) if notices => return,
            Ok(0) => thread::sleep(left),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) if notices => return,
            Err(_) => thread::sleep(left),
        }
    }
    let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

fn slow(application: SocketAddr, limit: u32) -> Value {
    let folder = Folder::new();
    let file = file(&folder, application, limit);
    let outcome = bywash(&["doctor", "--config", &file, "--slow", "/report", "--json"]);
    assert!(
        outcome.err.contains("requests for /report directly to the application"),
        "{}",
        outcome.err
    );
    finding(&outcome, "abandoned work")
}

#[test]
fn an_application_that_stops_is_told_from_one_that_goes_on_and_from_one_with_room() {
    let stops = thread::spawn(|| slow(application(2, true), 2));
    let goes_on = thread::spawn(|| slow(application(2, false), 2));
    let room = thread::spawn(|| slow(application(4, false), 2));
    let stops = stops.join().unwrap();
    assert_eq!(stops["verdict"], "ok", "{stops:#}");
    assert_eq!(stops["numbers"]["crowd"], 2);
    let goes_on = goes_on.join().unwrap();
    assert_eq!(goes_on["verdict"], "problem", "{goes_on:#}");
    let remedy = goes_on["remedy"].as_str().unwrap();
    assert!(remedy.contains("upstream.departures = \"unnoticed\""), "{goes_on:#}");
    let room = room.join().unwrap();
    assert_eq!(room["verdict"], "unknown", "{room:#}");
}

#[test]
fn a_path_that_is_quick_or_missing_tells_nothing() {
    let found = slow(Upstream::new().address, 2);
    assert_eq!(found["verdict"], "warning", "{found:#}");
    let nowhere = slow(free(), 2);
    assert_eq!(nowhere["verdict"], "problem", "{nowhere:#}");
}

#[test]
fn what_cannot_be_tested_is_misuse() {
    for args in [["--front", "shop.example"], ["--slow", "report"], ["--slow", "/a b"]] {
        let outcome = bywash(&[&["doctor"], &args[..]].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(outcome.err.contains("write "), "{}", outcome.err);
    }
}
