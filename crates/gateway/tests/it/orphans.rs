//! Tests of the messages to the stop daemon: one for each request that was given up while the
//! application worked on it, and no other. These tests play the daemon. `scripts/test-databases`
//! tests with the real daemon.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::setup::{Running, Setup, get};
use crate::upstream::{Calls, Upstream};

const PATIENCE: Duration = Duration::from_secs(20);

/// The path of a socket on which the daemon may listen.
struct DaemonSocket(PathBuf);

impl DaemonSocket {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("bywash-orphans-{}-{number}", std::process::id())))
    }

    fn daemon(&self) -> UnixListener {
        let _ = std::fs::remove_file(&self.0);
        UnixListener::bind(&self.0).unwrap()
    }

    fn before(&self, upstream: &Upstream) -> Setup {
        Setup::before(upstream).set("stopd.socket", &format!("'{}'", self.0.display()))
    }
}

impl Drop for DaemonSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The daemon's side of a connection.
struct DaemonConnection(BufReader<UnixStream>);

impl DaemonConnection {
    fn of(daemon: &UnixListener) -> Self {
        let (stream, _) = daemon.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

fn started(socket: &DaemonSocket) -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = socket.before(&upstream).limit(1).start();
    (upstream, calls, gateway)
}

/// Lets a client leave while the application works on its request. The application's connection
/// stays open, so that the application does not break off first.
fn leaves(gateway: &Running, calls: &Calls) {
    let before = gateway.outcome("orphaned");
    let client = gateway.asks("/search");
    let call = calls.next();
    drop(client);
    gateway.waits_for_outcome("orphaned", before + 1);
    drop(call);
}

#[test]
fn a_client_that_leaves_while_the_application_works_is_told_by_the_name_that_the_application_has() {
    let socket = DaemonSocket::new();
    let daemon = socket.daemon();
    let (_upstream, calls, gateway) = started(&socket);
    for number in 1..=3 {
        let client = gateway.asks("/search");
        let call = calls.next();
        let name = call.request.field("bywash-request").unwrap().to_owned();
        drop(client);
        let mut connection = DaemonConnection::of(&daemon);
        assert_eq!(connection.read_line(), format!("{number} STOP {name} client_left"));
        // A restarted daemon gets the messages as well.
        drop(connection);
    }
    gateway.is_idle_again();
    assert_eq!(gateway.metric("bywash_orphans_told_total"), 3.0);
}

#[test]
fn nothing_is_told_of_who_was_answered_or_never_reached_the_application() {
    let socket = DaemonSocket::new();
    let daemon = socket.daemon();
    let (_upstream, calls, gateway) = started(&socket);
    let mut served = gateway.asks("/page");
    let first = calls.next();
    let queued = gateway.asks("/ghost");
    gateway.waits_for("waiting", 1);
    drop(queued);
    gateway.waits_for("waiting", 0);
    first.answer("page");
    assert_eq!(served.answer().unwrap().text(), "page");
    let last = gateway.asks("/last");
    let call = calls.next();
    let name = call.request.field("bywash-request").unwrap().to_owned();
    drop(last);
    // The first message is about the last request.
    assert_eq!(DaemonConnection::of(&daemon).read_line(), format!("1 STOP {name} client_left"));
}

#[test]
fn who_breaks_off_in_the_middle_of_the_answer_is_told() {
    let socket = DaemonSocket::new();
    let daemon = socket.daemon();
    let (_upstream, calls, gateway) = started(&socket);
    let mut client = gateway.asks("/report");
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
    client.head().unwrap();
    drop(client);
    assert!(DaemonConnection::of(&daemon).read_line().ends_with(" client_left"));
}

#[test]
fn a_request_that_the_gateway_stops_or_waits_for_no_longer_is_told_with_its_reason() {
    let socket = DaemonSocket::new();
    let daemon = socket.daemon();
    let (upstream, calls) = Upstream::by_hand();
    let gateway = socket
        .before(&upstream)
        .set("terminate.policy", "'fixed'")
        .set(
            "class.search",
            "{ match = ['GET /search'], cancellable = true, run_min = '20ms', run_max = '40ms' }",
        )
        .set("class.report", "{ match = ['GET /report'], response_timeout = '50ms' }")
        .start();
    let mut connection = None;
    let mut hear = || connection.get_or_insert_with(|| DaemonConnection::of(&daemon)).read_line();
    assert_eq!(gateway.get("/search").status(), Some(504));
    assert!(hear().ends_with(" ran_too_long"));
    assert_eq!(gateway.get("/report").status(), Some(504));
    assert!(hear().ends_with(" deadline"));
    let mut client =
        gateway.sends(get("/page").replace("\r\n\r\n", "\r\nBywash-Deadline: 50\r\n\r\n"));
    assert_eq!(client.answer().unwrap().status(), Some(504));
    assert!(hear().ends_with(" deadline"));
    drop(calls);
}

#[test]
fn an_answer_that_stands_still_is_given_up_and_the_applications_own_504_is_an_answer() {
    let socket = DaemonSocket::new();
    let daemon = socket.daemon();
    let (upstream, calls) = Upstream::by_hand();
    let gateway = socket.before(&upstream).set("upstream.idle_timeout", "'50ms'").start();
    let mut own = gateway.asks("/own");
    calls.next().send_and_close("HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 2\r\n\r\nno");
    assert_eq!(own.answer().unwrap().status(), Some(504));
    let mut client = gateway.asks("/report");
    let mut call = calls.next();
    let name = call.request.field("bywash-request").unwrap().to_owned();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
    assert!(client.answer().is_err(), "it breaks off");
    // The first message is about the second request.
    assert_eq!(DaemonConnection::of(&daemon).read_line(), format!("1 STOP {name} deadline"));
}

#[test]
fn a_bypassed_gateway_tells_nothing() {
    let socket = DaemonSocket::new();
    let daemon = socket.daemon();
    let (_upstream, calls, gateway) = started(&socket);
    gateway.gateway().bypass(true);
    leaves(&gateway, &calls);
    gateway.gateway().bypass(false);
    leaves(&gateway, &calls);
    assert!(DaemonConnection::of(&daemon).read_line().starts_with("1 STOP "));
}

#[test]
fn a_daemon_that_is_not_there_costs_messages_and_nothing_else() {
    let socket = DaemonSocket::new();
    let (_upstream, calls, gateway) = started(&socket);
    for _ in 1..=3 {
        leaves(&gateway, &calls);
    }
    crate::setup::eventually("they are counted", || {
        gateway.metric("bywash_orphans_lost_total") == 3.0
    });
    gateway.is_idle_again();
}

#[test]
fn what_the_daemon_refuses_is_counted() {
    let socket = DaemonSocket::new();
    let daemon = socket.daemon();
    let (_upstream, calls, gateway) = started(&socket);
    leaves(&gateway, &calls);
    let mut connection = DaemonConnection::of(&daemon);
    connection.read_line();
    connection.0.get_mut().write_all(b"1 ERR forbidden add this user to stopd.stops\n").unwrap();
    crate::setup::eventually("it is counted", || {
        gateway.metric("bywash_orphans_refused_total") == 1.0
    });
}

#[test]
fn a_reload_changes_who_is_told() {
    let (first, second) = (DaemonSocket::new(), DaemonSocket::new());
    let (one, other) = (first.daemon(), second.daemon());
    let (upstream, calls) = Upstream::by_hand();
    let gateway = first.before(&upstream).start();
    leaves(&gateway, &calls);
    assert!(DaemonConnection::of(&one).read_line().starts_with("1 STOP "));
    gateway.reload(&second.before(&upstream)).unwrap();
    leaves(&gateway, &calls);
    assert!(DaemonConnection::of(&other).read_line().starts_with("1 STOP "));
}
