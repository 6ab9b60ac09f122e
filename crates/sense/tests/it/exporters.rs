//! Tests of exporters: recorded responses of real ones, and harmful ones.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, fs, thread};

use bywash_sense::series::{Exporter, Processors, Reading, Root, Sampler, Source, Step, Unit};
use bywash_units::TimeSpan;

use super::{clock, file, values_of, wait_for};

/// A timeout for responses, longer than any step of these tests takes.
const PATIENCE: TimeSpan = TimeSpan::from_secs(20);
const SHORT: TimeSpan = TimeSpan::from_millis(300);

/// Starts a server on its own port. Returns its address and the number of its requests.
fn server(
    answer: impl Fn(usize, &mut TcpStream) + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    // The thread ends with the process of the test.
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let _head = client.read(&mut [0; 4096]);
            answer(count.fetch_add(1, Ordering::SeqCst), &mut client);
        }
    });
    (address, asked)
}

fn exporter(address: SocketAddr, patience: TimeSpan) -> Exporter {
    Exporter::new(&format!("http://{address}/metrics"), patience).unwrap()
}

fn ok(client: &mut TcpStream, body: &[u8]) {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _sent = client.write_all(head.as_bytes()).and_then(|()| client.write_all(body));
}

fn says(name: &str) -> Vec<Reading> {
    let text = fs::read(file("exporters").join(name)).unwrap();
    let (address, _) = server(move |_, client| ok(client, &text));
    wait_for(&mut exporter(address, PATIENCE)).unwrap().readings
}

#[test]
fn a_host_is_told_as_it_tells_itself() {
    let readings = says("node_exporter.txt");
    let busy = 17222.67 + 629.74 + 1649.98 + 30.84 + 18540.99 + 639.9 + 1755.44 + 65.12;
    let values = values_of(&readings);
    assert_eq!((values[0].0, values[0].2), ("host/cpu", Some(2.0)));
    assert!((values[0].1 - busy).abs() < 1e-6, "{} s busy", values[0].1);
    assert_eq!(values[1], ("host/disk/vda", 524.004, Some(1.0)), "and no zram");
    let eth0 = [
        ("host/net/eth0/received", 535_204_307.0, None),
        ("host/net/eth0/sent", 1_339_202.0, None),
    ];
    assert_eq!(values[2..4], eth0, "whose speed of -125000 is none");
    let pressure = ("host/pressure/cpu/some", 8_609.590_335, None);
    assert!(values.contains(&pressure), "{values:?}");
    assert!(
        !values.iter().any(|one| one.0.contains("lo/") || one.0.contains("guest")),
        "{values:?}"
    );
}

#[test]
fn a_database_is_told_without_its_exporter() {
    let readings = says("mysqld_exporter.txt");
    let expected = [
        ("database/read", 2_785_280.0, None),
        ("database/threads_running", 0.0, Some(151.0)),
        ("database/waiting_for_rows", 0.0, None),
        ("database/written", 0.0, None),
    ];
    assert_eq!(
        values_of(&readings),
        expected,
        "without its processor time, which this server does not count"
    );
    assert_eq!(readings[1].unit, Unit::Held);
    let readings = says("postgres_exporter.txt");
    let expected = [
        ("database/active", 0.0, Some(100.0)),
        ("database/idle_in_transaction", 0.0, None),
        ("database/read", 9_822_208.0, None),
    ];
    assert_eq!(values_of(&readings), expected, "without times of blocks, which are not tracked");
}

#[test]
fn no_proxy_of_the_environment_is_used() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "exporters::a_host_is_told_as_it_tells_itself"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, format!("http://{closed}"));
    }
    let output = again.output().unwrap();
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && message.contains("1 passed"), "{message}");
}

#[test]
fn an_exporter_that_does_harm_costs_its_own_reading_and_is_said() {
    let forever = |client: &mut TcpStream, piece: &[u8], pause: Duration| {
        while client.write_all(piece).is_ok() {
            thread::sleep(pause);
        }
    };
    let endless = "HTTP/1.1 200 OK\r\n\r\n";
    let head = |client: &mut TcpStream| client.write_all(endless.as_bytes()).unwrap();
    let hangs = server(|_, client| drop(client.read(&mut [0; 1])));
    let trickles = server(move |_, client| {
        head(client);
        forever(client, b"x", Duration::from_millis(20));
    });
    let half_a_head = |client: &mut TcpStream| drop(client.write_all(b"HTTP/1.1 200 OK\r\nx: "));
    let trickles_its_head = server(move |_, client| {
        half_a_head(client);
        forever(client, b"y", Duration::from_millis(20));
    });
    for (address, _) in [hangs, trickles, trickles_its_head] {
        let message = wait_for(&mut exporter(address, SHORT)).unwrap_err().to_string();
        assert!(message.contains("timeout"), "{message}");
    }
    let gigabytes = server(move |_, client| {
        head(client);
        forever(client, &b"node_load1 0.5\n".repeat(5000), Duration::ZERO);
    });
    let one_line = server(move |_, client| {
        head(client);
        forever(client, &b"x".repeat(65536), Duration::ZERO);
    });
    let large_head = server(move |_, client| {
        half_a_head(client);
        forever(client, &b"y".repeat(65536), Duration::ZERO);
    });
    let garbage = server(|_, client| drop(client.write_all(b"\x00\xff\x1b[2J\r\n\r\n")));
    let closes = server(|_, _| ());
    let short = server(|_, client| {
        drop(client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nnode_load1 1\n"));
    });
    for (address, _) in [gigabytes, one_line, large_head, garbage, closes, short] {
        let message = wait_for(&mut exporter(address, PATIENCE)).unwrap_err().to_string();
        assert!(message.starts_with(&format!("http://{address}/metrics: ")), "{message}");
        assert!(!message.contains("timeout"), "its size was not what ended it: {message}");
        assert!(message.len() < 400 && !message.contains('\u{1b}'), "{message:?}");
    }
}

#[test]
fn what_is_no_exporter_is_told_so() {
    let (elsewhere, asked) =
        server(|_, client| ok(client, b"node_pressure_cpu_waiting_seconds_total 1\n"));
    let (redirects, _) = server(move |_, client| {
        let head = format!(
            "HTTP/1.1 302 Found\r\nlocation: http://{elsewhere}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        drop(client.write_all(head.as_bytes()));
    });
    let (page, _) = server(|_, client| ok(client, b"<html>node_load1 1</html>\nnode_load1 1\n"));
    let (down, _) = server(|_, client| {
        drop(
            client
                .write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        );
    });
    for (address, expected) in [(redirects, "status 302"), (page, "no known metric"), (down, "503")]
    {
        let message = wait_for(&mut exporter(address, PATIENCE)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nobody was asked elsewhere");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let message = wait_for(&mut exporter(closed, PATIENCE)).unwrap_err().to_string();
    assert!(message.contains("refused"), "{message}");
}

#[test]
fn only_plain_urls_without_passwords_are_taken() {
    for url in [
        "",
        "127.0.0.1:9100",
        "/metrics",
        "https://db/metrics",
        "ftp://db/",
        "http:///x",
        "http://a b/",
    ] {
        let message = Exporter::new(url, PATIENCE).unwrap_err().to_string();
        assert!(message.contains("http://127.0.0.1:9100/metrics"), "{url}: {message}");
    }
    let message = Exporter::new("http://me:secret@db/metrics", PATIENCE).unwrap_err().to_string();
    assert!(message.contains("password") && !message.contains("secret"), "{message}");
    let exporter = Exporter::new("http://127.0.0.1:1/probe?auth=secret", PATIENCE).unwrap();
    assert_eq!(exporter.name(), "http://127.0.0.1:1/probe");
}

#[test]
fn others_are_read_while_one_hangs_and_it_is_read_when_it_answers() {
    let (address, asked) = server(|number, client| {
        if number == 0 {
            drop(client.read(&mut [0; 1]));
        } else {
            let body = format!("node_pressure_io_waiting_seconds_total {number}e-3\n");
            ok(client, body.as_bytes());
        }
    });
    let mut sampler = Sampler::new(clock(), TimeSpan::from_secs(600));
    sampler.add("db", exporter(address, SHORT));
    sampler.add("web", Processors::new(Root::host()));
    let mut steps: Vec<Step> = Vec::new();
    let has_uses =
        |steps: &[Step]| steps.iter().any(|step| step.uses.iter().any(|one| one.source == 0));
    while !has_uses(&steps) {
        assert!(steps.len() < 6000, "{} asked in a minute", asked.load(Ordering::SeqCst));
        steps.push(sampler.step());
        thread::sleep(Duration::from_millis(10));
    }
    let changes = steps.iter().flat_map(|step| &step.changes);
    let changes: Vec<(usize, bool)> =
        changes.map(|one| (one.source, one.failed.is_some())).collect();
    assert_eq!(changes, [(0, true), (0, false)], "said once each");
    let meanwhile = steps.iter().position(|step| !step.changes.is_empty()).unwrap();
    let others = steps[..meanwhile].iter().flat_map(|step| &step.uses);
    assert!(others.filter(|one| one.source == 1).count() > 0, "none while it hung");
    let used = steps.last().unwrap().uses.iter().find(|one| one.source == 0).unwrap();
    assert_eq!((&*used.resource.tier, &*used.resource.name), ("db", "host/pressure/io/some"));
    assert!(used.used > 0.0 && used.to > used.from, "{used:?}");
}
