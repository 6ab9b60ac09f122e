//! Tests of questions about one of the last requests, and of the stream of all requests that end
//! from now on.

use serde_json::{Value, json};

use crate::operator::fields;
use crate::setup::{Running, Setup, admin, eventually, get, post};
use crate::upstream::{Upstream, ok, with_fields};
use crate::wire::Wire;

/// Starts a server that answers with the name that the gateway has given the request.
fn naming() -> Upstream {
    Upstream::app(|request| ok(request.field("bywash-request").unwrap_or_default()))
}

/// Returns the document about a request that has ended.
fn explained(gateway: &Running, name: &str) -> Value {
    let target = format!("/v1/requests/{name}");
    eventually("it has ended", || admin(gateway.admin(), &target).status() == Some(200));
    serde_json::from_slice(&admin(gateway.admin(), &target).body).unwrap()
}

#[test]
fn a_request_can_be_asked_about_by_its_name() {
    let upstream = naming();
    let gateway = Setup::before(&upstream).start();
    let name = gateway.sends(post("/p?q=1", "12345")).answer().unwrap().text();
    let request = explained(&gateway, &name);
    for (key, value) in [
        ("request", &*name),
        ("method", "POST"),
        ("target", "/p?q=1"),
        ("class", "other"),
        ("decision", "run"),
        ("reason", "slot_free"),
        ("outcome", "served"),
    ] {
        assert_eq!(request[key], value, "{request}");
    }
    assert_eq!((&request["status"], &request["server"]), (&200.into(), &0.into()), "{request}");
    assert_eq!([&request["request_bytes"], &request["response_bytes"]], [5, 16], "{request}");
    assert!(request["explanation"].as_str().is_some_and(|words| words.len() > 10), "{request}");
}

#[test]
fn a_refused_request_can_be_asked_about_too() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).set("queue.max_wait", "'100ms'").start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let request = get("/refused").replace("\r\n\r\n", "\r\nAccept: application/json\r\n\r\n");
    let answer = gateway.sends(request).answer().unwrap();
    assert_eq!(answer.field("content-type"), Some("application/problem+json"));
    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
    let request = explained(&gateway, problem["request"].as_str().unwrap());
    assert_eq!((&request["target"], &request["status"]), (&"/refused".into(), &503.into()));
    assert_eq!(
        (&request["decision"], &request["reason"]),
        (&"shed".into(), &"waited_too_long".into())
    );
    assert!(request["queue_wait_us"].as_u64().is_some_and(|wait| wait >= 100_000), "{request}");
    assert!(request["explanation"].is_string(), "{request}");
}

#[test]
fn what_is_no_name_and_what_nobody_knows_is_said_to_be_so() {
    let upstream = naming();
    let gateway = Setup::before(&upstream).start();
    for (name, status) in [
        ("0123456789abcdef", 404),
        ("0000000000000000", 404),
        ("0123456789abcde", 400),
        ("0123456789abcdef0", 400),
        ("+123456789abcdef", 400),
        ("x", 400),
        ("", 404),
    ] {
        let answer = admin(gateway.admin(), &format!("/v1/requests/{name}"));
        assert_eq!(answer.status(), Some(status), "{name}");
    }
    // An invalid message has no name.
    gateway.sends("GET / HTTP/1.1\r\n\r\n").answer().unwrap();
    let unknown = admin(gateway.admin(), "/v1/requests/0000000000000000");
    assert_eq!(unknown.status(), Some(404));
    let reach = "among the last 1 that have ended, which cover the last";
    assert!(unknown.text().contains(reach), "{}", unknown.text());
}

/// Begins to watch the requests that match `filter`.
fn tap(gateway: &Running, filter: &str) -> Wire {
    let address = gateway.admin();
    let mut wire = Wire::connect(address);
    wire.send(format!("GET /v1/tap{filter} HTTP/1.1\r\n{}\r\n", fields(address)));
    let head = wire.head().unwrap();
    assert_eq!(
        (head.status(), head.field("content-type")),
        (Some(200), Some("application/x-ndjson"))
    );
    wire
}

/// Returns the watcher's next line.
fn line(wire: &mut Wire) -> Value {
    let size = usize::from_str_radix(&wire.line().unwrap(), 16).unwrap();
    let line = wire.bytes(size).unwrap();
    assert_eq!(wire.bytes(2).unwrap(), b"\r\n");
    assert!(line.ends_with(b"\n"));
    serde_json::from_slice(&line).unwrap()
}

#[test]
fn whoever_watches_sees_every_request_as_it_ends() {
    let upstream = naming();
    let gateway = Setup::before(&upstream).start();
    let (mut one, mut two) = (tap(&gateway, ""), tap(&gateway, ""));
    for number in 0..5 {
        let target = format!("/{number}");
        let name = gateway.get(&target).text();
        for watcher in [&mut one, &mut two] {
            let line = line(watcher);
            assert_eq!((&line["target"], &line["request"]), (&json!(target), &json!(name)));
        }
    }
    gateway.sends("GET / HTTP/1.1\r\n\r\n").answer().unwrap();
    assert_eq!(line(&mut one)["fault"], "host");
}

#[test]
fn filters_leave_out_what_was_not_asked_for() {
    let upstream = Upstream::app(|request| match request.target() {
        "/missing" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => with_fields("", ""),
    });
    let gateway = Setup::before(&upstream).set("class.page", "{ match = ['GET /p/**'] }").start();
    let cases = [
        ("?class=page", "/p/1"),
        ("?status=404", "/missing"),
        ("?class=other&status=200", "/last"),
        ("?outcome=served&decision=run&reason=slot_free&client=127.0.0.1&status=404", "/missing"),
    ];
    let mut watchers: Vec<Wire> = cases.iter().map(|(filter, _)| tap(&gateway, filter)).collect();
    let mut never = tap(&gateway, "?class=page&status=404");
    for target in ["/p/1", "/missing", "/last"] {
        gateway.get(target);
    }
    for (watcher, (filter, target)) in watchers.iter_mut().zip(cases) {
        assert_eq!(line(watcher)["target"], target, "{filter}");
    }
    assert!(never.has_nothing_to_read());
}

#[test]
fn a_filter_that_nobody_knows_is_refused() {
    let upstream = naming();
    let gateway = Setup::before(&upstream).start();
    let answer = admin(gateway.admin(), "/v1/tap?clas=page");
    assert_eq!(answer.status(), Some(400));
    assert!(
        answer.text().contains("`clas`") && answer.text().contains("class"),
        "{}",
        answer.text()
    );
}

#[test]
fn only_so_many_may_watch_and_whoever_leaves_makes_room() {
    let upstream = naming();
    let gateway = Setup::before(&upstream).start();
    let mut watchers: Vec<Wire> = (0..8).map(|_| tap(&gateway, "")).collect();
    assert_eq!(admin(gateway.admin(), "/v1/tap").status(), Some(503));
    watchers.pop();
    let address = gateway.admin();
    eventually("there is room", || {
        let mut wire = Wire::connect(address);
        wire.send(format!("GET /v1/tap HTTP/1.1\r\n{}\r\n", fields(address)));
        wire.head().unwrap().status() == Some(200)
    });
}

#[test]
fn a_watcher_that_does_not_read_holds_nobody_up() {
    let upstream = naming();
    let gateway = Setup::before(&upstream).start();
    let _watcher = tap(&gateway, "");
    let mut client = gateway.client();
    let target = format!("/{}", "x".repeat(400));
    for _ in 0..200 {
        client.send(get(&target).repeat(20));
        for _ in 0..20 {
            assert_eq!(client.answer().unwrap().status(), Some(200));
        }
    }
    gateway.is_idle_again();
    eventually("all are counted", || gateway.outcome("served") == 4000);
    assert_eq!(admin(gateway.admin(), "/livez").status(), Some(200));
}
