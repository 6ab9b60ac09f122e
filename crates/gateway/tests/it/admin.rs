//! Tests of the admin listener, as operators and scrapers see it.

use std::collections::BTreeSet;
use std::net::TcpListener;

use crate::operator::fields;
use crate::setup::{Setup, admin, get, status};
use crate::upstream::Upstream;
use crate::wire::{Message, Wire};

/// Returns the answer to a GET for this target, with this `Host`.
fn ask(address: std::net::SocketAddr, target: &str, host: &str) -> Message {
    let mut wire = Wire::connect(address);
    wire.send(format!("GET {target} HTTP/1.1\r\n{host}Connection: close\r\n\r\n"));
    wire.answer().unwrap()
}

#[test]
fn it_is_alive_and_ready() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    for (target, status) in
        [("/livez", 200), ("/readyz", 200), ("/metrics", 200), ("/v1/status", 200), ("/", 200)]
    {
        assert_eq!(admin(address, target).status(), Some(status), "{target}");
    }
    assert_eq!(upstream.accepted(), 0);
}

#[test]
fn only_those_who_ask_by_a_loopback_name_get_an_answer() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    for host in ["localhost", "localhost:1", "127.0.0.1", "[::1]:7070"] {
        let answer = ask(address, "/metrics", &format!("Host: {host}\r\n"));
        assert_eq!(answer.status(), Some(200), "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""]
    {
        let answer = ask(address, "/metrics", &format!("Host: {host}\r\n"));
        assert_eq!(answer.status(), Some(403), "{host}");
        assert!(!answer.text().contains("bywash_"));
    }
    // Without a `Host`, a message is not a valid request.
    assert_eq!(ask(address, "/metrics", "").status(), Some(400));
}

#[test]
fn only_get_head_and_post_mean_something_there() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
        let mut wire = Wire::connect(address);
        wire.send(format!(
            "{method} /v1/status HTTP/1.1\r\n{}Bywash-Admin: 1\r\n\r\n",
            fields(address)
        ));
        assert_eq!(wire.answer().unwrap().status(), Some(405), "{method}");
    }
}

#[test]
fn the_status_says_how_it_stands() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _running = gateway.asks("/");
    let _call = calls.next();
    let _waiting = gateway.asks("/");
    gateway.waits_for("waiting", 1);
    let status = status(gateway.admin());
    assert_eq!(status["mode"], "enforce");
    assert_eq!(status["limit"], 1);
    assert_eq!(status["running"], 1);
    assert_eq!(status["connections"], 2);
    assert_eq!(status["draining"], false);
    let server = &status["servers"][0];
    assert_eq!(server["server"], format!("http://{}", upstream.address));
    assert_eq!((&server["state"], &server["running"]), (&"up".into(), &1.into()));
    assert_eq!(status["streams"], 0);
    assert_eq!(status["policy"]["name"], "session-first");
    assert_eq!(status["concurrency_policy"]["name"], "fixed");
    assert_eq!(status["concurrency_policy"]["parameters"]["slots"], 1);
    assert_eq!(status["classes"][0]["waiting"], 1);
}

#[test]
fn it_answers_while_every_worker_is_busy_with_a_crowd() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _crowd: Vec<Wire> = (0..50).map(|_| gateway.asks("/")).collect();
    let _call = calls.next();
    gateway.waits_for("waiting", 49);
    assert_eq!(admin(gateway.admin(), "/livez").status(), Some(200));
}

/// Returns whether a line is a sample of the text format: a name, labels in braces, and a number.
fn is_sample(line: &str) -> bool {
    let Some((sample, value)) = line.rsplit_once(' ') else { return false };
    let name = sample.split('{').next().unwrap_or_default();
    let named = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let labelled = sample == name || sample.ends_with('}');
    !name.is_empty() && named && labelled && value.parse::<f64>().is_ok()
}

#[test]
fn the_metrics_can_be_read() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream)
        .set("class.page", "{ match = ['GET /p/**'], mode = 'observe' }")
        .start();
    gateway.get("/p/1");
    gateway.get("/other");
    gateway.is_idle_again();
    let text = gateway.metrics();
    let (comments, samples): (Vec<_>, Vec<_>) = text.lines().partition(|l| l.starts_with('#'));
    assert_eq!(comments.last(), Some(&"# EOF"));
    let odd: Vec<_> = samples.iter().filter(|line| !is_sample(line)).collect();
    assert!(odd.is_empty(), "{odd:?}");
    let names: BTreeSet<_> = samples.iter().filter_map(|line| line.rsplit_once(' ')).collect();
    assert_eq!(names.len(), samples.len(), "a sample stands there twice");
    for (sample, value) in [
        ("bywash_requests_total{class=\"page\",outcome=\"served\"}", 1.0),
        ("bywash_requests_total{class=\"other\",outcome=\"served\"}", 1.0),
        ("bywash_decisions_total{class=\"page\",mode=\"observe\",reason=\"slot_free\"}", 1.0),
        ("bywash_decisions_total{class=\"other\",mode=\"enforce\",reason=\"slot_free\"}", 1.0),
        ("bywash_service_seconds_count{class=\"page\"}", 1.0),
        ("bywash_queue_wait_seconds_count{class=\"other\"}", 1.0),
        ("bywash_limit", 16.0),
        ("bywash_running", 0.0),
        ("bywash_draining", 0.0),
    ] {
        assert_eq!(gateway.metric(sample), value, "{sample}");
    }
}

#[test]
fn an_address_in_use_is_named() {
    let upstream = Upstream::echo();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for key in ["listen.http", "listen.admin"] {
        let setup = Setup::before(&upstream).set(key, &format!("'{address}'"));
        let error = setup.try_start().map(|_| ()).expect_err("it is taken").to_string();
        assert!(error.contains(&address.to_string()) && error.contains(key), "{error}");
    }
}

#[test]
fn what_did_not_start_holds_no_address() {
    let upstream = Upstream::echo();
    // No other test uses ports of 127.0.0.8.
    let taken = TcpListener::bind("127.0.0.8:0").unwrap();
    let free = TcpListener::bind("127.0.0.8:0").unwrap().local_addr().unwrap();
    let setup = Setup::before(&upstream)
        .set("listen.http", &format!("'{free}'"))
        .set("listen.admin", &format!("'{}'", taken.local_addr().unwrap()));
    assert!(setup.try_start().is_err());
    drop(taken);
    let gateway = setup.start();
    assert_eq!(gateway.sends(get("/")).answer().unwrap().text(), "/");
}

#[test]
fn nothing_follows_the_head_of_a_tap_that_is_only_asked_for() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut wire = Wire::connect(gateway.admin());
    wire.send(format!("HEAD /v1/tap HTTP/1.1\r\n{}\r\n", fields(gateway.admin())));
    let head = wire.head().unwrap();
    assert_eq!(head.status(), Some(200));
    assert_eq!(head.field("content-type"), Some("application/x-ndjson"));
    assert_eq!(head.field("transfer-encoding"), None);
    assert_eq!(wire.rest(), b"");
}
