//! Tests of clients that leave, in every phase of a request. Everything that a client held is
//! released, and no work is done for it.

use std::io::Write;
use std::time::Duration;

use crate::setup::{Running, Setup, eventually, get, post};
use crate::upstream::{Calls, Upstream, deaf};
use crate::wire::Wire;

const TRIALS: u64 = 10;

fn one_slot() -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    (upstream, calls, gateway)
}

/// Closes the client's connection with a FIN.
pub(crate) fn fin(client: Wire) {
    drop(client);
}

pub(crate) fn reset(client: Wire) {
    client.reset();
}

/// Half-closes the client's connection, and never reads. The other half stays open until the
/// process ends.
pub(crate) fn half(client: Wire) {
    client.half_close();
    std::mem::forget(client);
}

/// Checks that the requests of clients that leave while they wait never reach the upstream, and
/// that the next request does. Each client sends `bytes` before it leaves.
fn leave_while_queued(bytes: impl AsRef<[u8]>, leave: fn(Wire)) {
    leave_the_queue_of(|setup| setup, bytes, leave);
}

/// Checks that clients can leave in the middle of a body whose buffer in the gateway is full.
fn leave_behind_a_full_buffer(bytes: impl AsRef<[u8]>, leave: fn(Wire)) {
    leave_the_queue_of(|setup| setup.set("queue.body_buffer", "'3B'"), bytes, leave);
}

fn leave_the_queue_of(set: impl FnOnce(Setup) -> Setup, bytes: impl AsRef<[u8]>, leave: fn(Wire)) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = set(Setup::before(&upstream).limit(1)).start();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    for _ in 0..TRIALS {
        let client = gateway.sends(&bytes);
        gateway.waits_for("waiting", 1);
        leave(client);
        gateway.waits_for("waiting", 0);
    }
    eventually("all are counted", || gateway.outcome("orphaned") == TRIALS);
    let mut next = gateway.asks("/next");
    gateway.waits_for("waiting", 1);
    call.answer("");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    assert!(!upstream.received().contains("ghost"), "{}", upstream.received());
    gateway.is_idle_again();
}

mod while_queued {
    use super::*;

    #[test]
    fn after_a_get_with_a_fin() {
        leave_while_queued(get("/ghost"), fin);
    }

    #[test]
    fn after_a_get_with_a_reset() {
        leave_while_queued(get("/ghost"), reset);
    }

    #[test]
    fn after_a_get_with_a_half_close() {
        leave_while_queued(get("/ghost"), half);
    }

    #[test]
    fn with_another_request_behind_the_first() {
        leave_while_queued(get("/ghost") + &get("/ghost"), fin);
    }

    #[test]
    fn with_half_a_head_behind_the_first_request() {
        leave_while_queued(get("/ghost") + "GET /gho", fin);
    }

    #[test]
    fn after_a_whole_post() {
        leave_while_queued(post("/ghost", &"x".repeat(1000)), fin);
    }

    #[test]
    fn in_the_middle_of_a_body() {
        leave_behind_a_full_buffer(post("/ghost", "12345").replace(": 5", ": 5000"), fin);
        leave_behind_a_full_buffer(post("/ghost", "12345").replace(": 5", ": 5000"), reset);
    }

    /// The client leaves before the request asks for a slot.
    #[test]
    fn before_the_rest_of_a_body() {
        let (_upstream, calls, gateway) = one_slot();
        let _running = gateway.asks("/runs");
        let call = calls.next();
        for leave in [fin, reset, half] {
            let client = gateway.sends(post("/ghost", "12345").replace(": 5", ": 5000"));
            gateway.waits_for("uploads", 1);
            leave(client);
            gateway.waits_for("uploads", 0);
        }
        gateway.waits_for_outcome("orphaned", 3);
        call.answer("");
        gateway.is_idle_again();
        assert!(calls.is_empty());
    }

    #[test]
    fn in_the_middle_of_a_chunk() {
        let head = "POST /ghost HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        leave_behind_a_full_buffer(format!("{head}ff\r\nabc"), fin);
    }

    #[test]
    fn before_a_body_that_was_never_asked_for() {
        let head = "POST /ghost HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\
                    Expect: 100-continue\r\n\r\n";
        leave_while_queued(head, fin);
    }

    #[test]
    fn behind_a_body_of_200_kilobytes() {
        leave_while_queued(post("/ghost", &"x".repeat(200 * 1024)), fin);
    }
}

/// Checks that the upstream connection is closed and the slot is released when a client leaves
/// whose request is at the upstream. `begin` is the part of the response that the client has
/// received by that time.
fn leave_while_running(bytes: impl AsRef<[u8]>, begin: &str, leave: fn(Wire)) {
    let (_upstream, calls, gateway) = one_slot();
    for _ in 0..TRIALS {
        let mut client = gateway.sends(&bytes);
        let mut call = calls.next();
        if !begin.is_empty() {
            call.send(begin);
            client.head().unwrap();
        }
        assert_eq!(gateway.count("running"), 1);
        leave(client);
        gateway.is_idle_again();
        eventually("the upstream sees it", || call.is_abandoned());
    }
    eventually("all are counted", || gateway.outcome("orphaned") == TRIALS);
    let mut next = gateway.asks("/next");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    assert_eq!(gateway.outcome("upstream_error"), 0);
}

mod while_running {
    use super::*;

    const BEGUN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc";
    const CHUNK: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";

    #[test]
    fn before_the_answer() {
        leave_while_running(get("/"), "", fin);
        leave_while_running(get("/"), "", reset);
        leave_while_running(get("/"), "", half);
    }

    #[test]
    fn before_the_answer_with_another_request_behind() {
        leave_while_running(get("/") + &get("/"), "", fin);
    }

    #[test]
    fn before_the_answer_to_a_post() {
        leave_while_running(post("/", "abc"), "", fin);
    }

    #[test]
    fn in_the_middle_of_the_answer() {
        leave_while_running(get("/"), BEGUN, fin);
        leave_while_running(get("/"), BEGUN, reset);
        leave_while_running(get("/"), CHUNK, fin);
        leave_while_running(get("/") + &get("/"), CHUNK, fin);
    }
}

#[test]
fn a_client_that_leaves_while_the_upstream_is_being_connected_to_gives_its_slot_back() {
    let (address, _kept) = deaf();
    let gateway =
        Setup::before_address(address).limit(1).set("upstream.connect_timeout", "'60s'").start();
    for leave in [fin, reset, half] {
        for _ in 0..TRIALS {
            let client = gateway.asks("/");
            gateway.waits_for("running", 1);
            leave(client);
            gateway.is_idle_again();
        }
    }
    eventually("all are counted", || gateway.outcome("orphaned") == 3 * TRIALS);
}

#[test]
fn a_client_that_leaves_in_the_middle_of_an_upload_is_counted_as_one_that_has_left() {
    let half_of_the_trials = |leave: fn(Wire)| {
        let upstream = Upstream::script(|mut wire| {
            let _ = wire.request();
        });
        let gateway = Setup::before(&upstream).limit(1).start();
        for _ in 0..TRIALS / 2 {
            let client = gateway.sends(post("/", "12345").replace(": 5", ": 5000"));
            gateway.waits_for("running", 1);
            leave(client);
            gateway.is_idle_again();
        }
        eventually("all are counted", || gateway.outcomes().values().sum::<u64>() == TRIALS / 2);
        assert_eq!(gateway.outcome("orphaned"), TRIALS / 2, "{:?}", gateway.outcomes());
    };
    // An upload that pauses gets its slot late, so the trials run side by side.
    std::thread::scope(|scope| {
        for leave in [fin, reset, fin, reset] {
            scope.spawn(move || half_of_the_trials(leave));
        }
    });
}

#[test]
fn a_reset_behind_a_blocked_upload_gives_the_slot_back() {
    let upstream = Upstream::stalled();
    let gateway = Setup::before(&upstream).limit(1);
    let gateway = gateway.set("upstream.departures", "'noticed'").start();
    for _ in 0..TRIALS {
        let mut client =
            gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n");
        client.stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let block = vec![b'x'; 64 * 1024];
        while client.stream.write(&block).is_ok() {}
        assert_eq!(gateway.count("running"), 1);
        client.reset();
        gateway.is_idle_again();
    }
    eventually("all are counted", || gateway.outcome("orphaned") == TRIALS);
}

#[test]
fn a_half_closed_client_gets_its_answer_if_that_is_allowed() {
    let (upstream, calls) = Upstream::by_hand_working_on();
    let gateway = Setup::before(&upstream).limit(1).set("listen.half_close", "'allow'").start();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let mut queued = gateway.asks("/queued");
    gateway.waits_for("waiting", 1);
    queued.half_close();
    let mut both = gateway.sends(get("/1") + &get("/2"));
    both.half_close();
    gateway.waits_for("waiting", 2);
    call.answer("");
    for target in ["/queued", "/1", "/2"] {
        let call = calls.next();
        assert_eq!(call.target(), target);
        call.answer(target);
    }
    assert_eq!(queued.answer().unwrap().text(), "/queued");
    assert!(queued.is_closed());
    assert_eq!(both.answer().unwrap().text(), "/1");
    assert_eq!(both.answer().unwrap().text(), "/2");
    assert!(both.is_closed());
}

#[test]
fn where_half_closing_is_allowed_those_who_reset_have_left_all_the_same() {
    let (upstream, calls) = Upstream::by_hand_working_on();
    let gateway = Setup::before(&upstream).limit(1).set("listen.half_close", "'allow'").start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    for _ in 0..TRIALS {
        let client = gateway.asks("/ghost");
        gateway.waits_for("waiting", 1);
        client.reset();
        gateway.waits_for("waiting", 0);
    }
}

#[test]
fn idle_connections_end_when_the_client_closes_them() {
    for half_close in ["'allow'", "'abort'"] {
        let upstream = Upstream::echo();
        let gateway = Setup::before(&upstream).set("listen.half_close", half_close).start();
        let mut used = gateway.asks("/");
        used.answer().unwrap();
        let fresh = gateway.client();
        gateway.waits_for("connections", 2);
        drop((used, fresh));
        gateway.waits_for("connections", 0);
    }
}

/// Over TLS, a client may announce its end (`close_notify`) and leave the connection open.
mod over_tls {
    use std::net::Shutdown;

    use super::*;
    use crate::tls::{Certified, Tls, config, connect, https, serving};

    fn one_slot(half_close: &str) -> (Upstream, Calls, Running, Certified) {
        let certified = Certified::new(half_close, &["shop.example"]);
        let (upstream, calls) = Upstream::by_hand_working_on();
        let setup = serving(&upstream, &[&certified]).limit(1);
        let gateway = setup.set("listen.half_close", &format!("'{half_close}'")).start();
        (upstream, calls, gateway, certified)
    }

    fn asks(gateway: &Running, certified: &Certified, bytes: &str) -> Tls {
        let mut tls = connect(https(gateway), "shop.example", config(&[certified], &[b"http/1.1"]));
        tls.write_all(bytes.as_bytes()).unwrap();
        tls
    }

    /// Sends `close_notify`, but does not close the socket.
    fn goes(tls: &mut Tls) {
        tls.conn.send_close_notify();
        tls.flush().unwrap();
    }

    #[test]
    fn a_client_that_waits_has_left() {
        let (upstream, calls, gateway, certified) = one_slot("abort");
        let _running = gateway.asks("/runs");
        let call = calls.next();
        let mut gone = Vec::new();
        for count in 1..=4 {
            let mut client = asks(&gateway, &certified, &get("/ghost"));
            gateway.waits_for("waiting", 1);
            goes(&mut client);
            gateway.waits_for_outcome("orphaned", count);
            gone.push(client);
        }
        call.answer("");
        gateway.is_idle_again();
        assert!(!upstream.received().contains("ghost"));
    }

    #[test]
    fn so_has_one_whose_request_runs() {
        let (_upstream, calls, gateway, certified) = one_slot("abort");
        let mut client = asks(&gateway, &certified, &get("/runs"));
        let call = calls.next();
        goes(&mut client);
        gateway.waits_for_outcome("orphaned", 1);
        eventually("the upstream is told", || call.is_abandoned());
    }

    #[test]
    fn one_that_may_half_close_is_answered() {
        let (_upstream, calls, gateway, certified) = one_slot("allow");
        let mut client = asks(&gateway, &certified, &get("/runs"));
        let call = calls.next();
        goes(&mut client);
        client.sock.shutdown(Shutdown::Write).unwrap();
        call.answer("yes");
        let mut all = String::new();
        let _ = std::io::Read::read_to_string(&mut client, &mut all);
        assert!(all.ends_with("yes"), "{all}");
    }

    /// Pipelined requests are answered in order.
    #[test]
    fn what_was_read_ahead_is_the_next_request() {
        let (_upstream, calls, gateway, certified) = one_slot("abort");
        let three = format!("{}{}{}", get("/1"), get("/2"), get("/3"));
        let mut client = asks(&gateway, &certified, &three);
        for number in 1..=3 {
            let call = calls.next();
            assert_eq!(call.target(), format!("/{number}"));
            call.answer("x");
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\nx") {
                let mut byte = [0];
                std::io::Read::read_exact(&mut client, &mut byte).unwrap();
                answer.extend_from_slice(&byte);
            }
        }
        goes(&mut client);
        gateway.waits_for("connections", 0);
        assert_eq!(gateway.outcome("served"), 3);
    }
}
