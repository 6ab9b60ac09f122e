//! Tests of clients' own deadlines. A deadline ends its own request and affects no other. The
//! gateway tells the upstream the remaining time.

use crate::setup::{Running, Setup, eventually};
use crate::upstream::{Call, Calls, Upstream, deaf, nobody};
use crate::wire::{Message, Wire};

/// Returns a GET with these fields, each with its line end.
fn get_with(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n")
}

fn asks(gateway: &Running, target: &str, milliseconds: u32) -> Wire {
    gateway.sends(get_with(target, &format!("Bywash-Deadline: {milliseconds}\r\n")))
}

fn before(upstream: &Upstream) -> Setup {
    Setup::before(upstream).limit(1)
}

fn why(answer: &Message) -> &str {
    answer.field("proxy-status").unwrap()
}

/// Returns the remaining time, in milliseconds, that the gateway tells the upstream.
fn left(call: &Call) -> Option<u64> {
    call.request.field("bywash-deadline").map(|text| text.parse().unwrap())
}

/// Returns the remaining time that the gateway tells the upstream when a client sends these fields.
fn remaining(
    gateway: &Running,
    calls: &Calls,
    target: &str,
    fields: &str,
) -> (u64, Option<String>) {
    let mut client = gateway.sends(get_with(target, fields));
    let call = calls.next();
    let remaining = (left(&call).unwrap(), call.request.field("grpc-timeout").map(str::to_owned));
    call.answer("");
    client.answer().unwrap();
    remaining
}

#[test]
fn who_has_waited_for_as_long_as_it_said_is_refused() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = before(&upstream).start();
    let mut running = gateway.asks("/page");
    let call = calls.next();
    let mut hasty = asks(&gateway, "/hasty", 100);
    let answer = hasty.answer().unwrap();
    assert_eq!(answer.status(), Some(503));
    assert!(why(&answer).contains("bywash-reason=waited_too_long"), "{}", why(&answer));
    assert!(answer.field("retry-after").is_some());
    gateway.waits_for("waiting", 0);
    gateway.waits_for_outcome("expired", 1);
    call.answer("page");
    assert_eq!(running.answer().unwrap().text(), "page");
    assert!(calls.is_empty(), "it never went there");
    // The client's connection is still usable.
    hasty.send(crate::setup::get("/next"));
    calls.next().answer("next");
    assert_eq!(hasty.answer().unwrap().text(), "next");
}

#[test]
fn who_runs_for_longer_than_its_client_waits_is_ended_and_nobody_is_to_blame() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = before(&upstream).set("health.eject_after", "1").start();
    for _ in 0..3 {
        let mut hasty = asks(&gateway, "/hasty", 50);
        let call = calls.next();
        let answer = hasty.answer().unwrap();
        assert_eq!(answer.status(), Some(504));
        let expected = "error=http_response_timeout; details=\"the client's own deadline\"";
        assert!(why(&answer).contains(expected), "{}", why(&answer));
        eventually("the upstream is told", || call.is_abandoned());
        gateway.is_idle_again();
    }
    gateway.waits_for_outcome("orphaned", 3);
    let server = gateway.status()["servers"][0].clone();
    assert_eq!((&server["response_failures"], &server["failures"]), (&0.into(), &0.into()));
    let mut next = gateway.asks("/next");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
}

#[test]
fn for_who_waits_no_longer_nothing_is_begun() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = before(&upstream).start();
    for fields in ["bywash-deadline: 0\r\n", "grpc-timeout: 0n\r\n"] {
        let answer = gateway.sends(get_with("/", fields)).answer().unwrap();
        assert!(matches!(answer.status(), Some(503 | 504)));
    }
    gateway.is_idle_again();
    assert!(calls.is_empty() && upstream.accepted() == 0);
}

#[test]
fn a_connection_that_a_client_does_not_wait_for_is_no_failure() {
    let (address, _kept) = deaf();
    let gateway = Setup::before_address(address).set("health.eject_after", "1").start();
    let answer = asks(&gateway, "/", 100).answer().unwrap();
    assert!(why(&answer).contains("the client's own deadline"), "{}", why(&answer));
    gateway.is_idle_again();
    assert_eq!(gateway.status()["servers"][0]["connect_failures"], 0);
}

#[test]
fn an_answer_that_has_begun_is_not_cut() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = before(&upstream).start();
    let mut client = asks(&gateway, "/", 300);
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha");
    // The sleep is longer than the client's deadline.
    std::thread::sleep(std::time::Duration::from_millis(400));
    call.send("lf");
    assert_eq!(client.answer().unwrap().text(), "half");
}

#[test]
fn a_deadline_lengthens_nothing() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = before(&upstream).set("upstream.response_timeout", "'100ms'").start();
    let mut client = asks(&gateway, "/", 60_000);
    let call = calls.next();
    assert_eq!(left(&call), Some(100));
    let answer = client.answer().unwrap();
    assert!(why(&answer).contains("details=\"response_timeout\""), "{}", why(&answer));
}

#[test]
fn where_nothing_is_decided_nothing_is_ended() {
    for bypassed in [false, true] {
        let (upstream, calls) = Upstream::by_hand();
        let mode = if bypassed { "'enforce'" } else { "'observe'" };
        let gateway = before(&upstream).set("mode", mode).start();
        gateway.gateway().bypass(bypassed);
        let mut client = asks(&gateway, "/", 100);
        let call = calls.next();
        assert!(left(&call).unwrap() <= 100, "who is next may know");
        // The sleep is longer than the client's deadline.
        std::thread::sleep(std::time::Duration::from_millis(300));
        call.answer("late");
        assert_eq!(client.answer().unwrap().text(), "late", "bypassed: {bypassed}");
    }
}

#[test]
fn what_is_left_is_written_anew() {
    let (upstream, calls) = Upstream::by_hand();
    let search = "{ match = ['GET /search'], cancellable = true, run_max = '20s' }";
    let report = "{ match = ['GET /report'], total_timeout = '10s' }";
    let setup = before(&upstream).set("class.search", search).set("class.report", report);
    let gateway = setup.start();
    let left = |target: &str, fields: &str| remaining(&gateway, &calls, target, fields).0;
    assert_eq!(left("/", ""), 60_000);
    assert_eq!(left("/", "bywash-deadline: 999999999\r\n"), 60_000);
    assert_eq!(left("/", "bywash-deadline: soon\r\n"), 60_000);
    assert_eq!(left("/", "bywash_deadline: 1\r\n"), 60_000);
    assert!(left("/", "bywash-deadline: 30000\r\n") <= 30_000);
    assert!(left("/search", "") <= 20_000);
    assert!(left("/search", "bywash-deadline: 15000\r\n") <= 15_000);
    assert!(left("/report", "") <= 10_000);
    gateway.reload(&setup.set("terminate.policy", "'never'")).unwrap();
    assert_eq!(remaining(&gateway, &calls, "/search", "").0, 60_000);
    let sent = upstream.received();
    assert!(!sent.contains("999999999") && !sent.contains("soon") && !sent.contains("_deadline"));
}

#[test]
fn a_call_is_told_what_is_left_of_its_own_timeout() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = before(&upstream).start();
    let remaining = |fields: &str| remaining(&gateway, &calls, "/", fields);
    let kind = "Content-Type: application/grpc\r\n";
    let (left, timeout) = remaining(&format!("{kind}grpc-timeout: 50S\r\n"));
    let timeout = timeout.unwrap();
    let micros: u64 = timeout.strip_suffix('u').unwrap().parse().unwrap();
    assert!(left <= 50_000 && micros <= 50_000_000 && micros >= left * 1000, "{left}, {timeout}");
    // Whether the client's timeout was ignored. The upstream is then told the hour of
    // `upstream.total_timeout`, minus the time that has passed.
    let is_total = |(left, timeout): (u64, Option<String>)| {
        let total: u64 = timeout.unwrap().strip_suffix('m').unwrap().parse().unwrap();
        left == 60_000 && (3_540_000..=3_600_000).contains(&total)
    };
    for malformed in ["50", "50s", "-1S", "123456789S"] {
        let fields = format!("{kind}grpc-timeout: {malformed}\r\n");
        assert!(is_total(remaining(&fields)), "{malformed}");
    }
    let twice = format!("{kind}grpc-timeout: 1S\r\ngrpc-timeout: 50S\r\n");
    assert!(is_total(remaining(&twice)));
}

#[test]
fn each_try_is_told_what_is_left_once() {
    let (upstream, calls) = Upstream::by_hand();
    let servers = [format!("http://{}", nobody()), format!("http://{}", upstream.address)];
    let gateway = Setup::before_address(nobody()).servers(&servers).start();
    for _ in 0..4 {
        let mut client = asks(&gateway, "/", 30_000);
        let call = calls.next();
        let fields = format!("{:?}", call.request.fields).to_ascii_lowercase();
        assert_eq!(fields.matches("bywash-deadline").count(), 1, "{fields}");
        call.answer("");
        client.answer().unwrap();
    }
}
