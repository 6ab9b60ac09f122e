//! Tests of access to the admin listener.

use std::os::unix::fs::PermissionsExt;

use bywash_api::{Access, endpoints};
use serde_json::json;

use crate::operator::{document, in_seconds, keys, says_with, token, write_key};
use crate::setup::Setup;
use crate::upstream::Upstream;
use crate::wire::{Message, Wire};

fn ask(address: std::net::SocketAddr, method: &str, target: &str, fields: &str) -> Message {
    let mut wire = Wire::connect(address);
    wire.send(format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\n{fields}Connection: close\r\n\r\n"
    ));
    wire.answer().unwrap()
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[test]
fn every_endpoint_of_the_table_has_its_answer_and_asks_for_a_token_unless_it_is_open() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    let good = bearer(&token(7, "ana", true, in_seconds(60)));
    for endpoint in endpoints() {
        let path = endpoint.path.replace("{number}", "1").replace("{name}", "0123456789abcdef");
        let path = path.replace("/v1/proof", &format!("/v1/proof?nonce={}", "0f".repeat(16)));
        let without = ask(address, endpoint.method, &path, "");
        let is_open = endpoint.access == Access::Anybody;
        assert_eq!(without.status() == Some(401), !is_open, "{path}: {:?}", without.status());
        if path == "/v1/events" || path == "/v1/tap" {
            assert_eq!(ask(address, "HEAD", &path, &good).status(), Some(200), "{path}");
            continue;
        }
        let fields = format!("{good}Bywash-Admin: 1\r\n");
        let answer = ask(address, endpoint.method, &path, &fields);
        let expected = if endpoint.method == "POST" { &[400][..] } else { &[200, 404][..] };
        assert!(expected.contains(&answer.status().unwrap()), "{path}: {}", answer.text());
        assert!(!answer.text().contains("no handler answers this path"), "{path}");
    }
}

#[test]
fn a_token_lets_in_for_as_long_as_it_says_and_with_the_key_that_signed_it() {
    let upstream = Upstream::echo();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("operators.key");
    write_key(&key, 1);
    let own = Setup::before(&upstream).set("listen.operators_key", &format!("'{}'", key.display()));
    let gateway = own.start();
    let asks = |token: &str| {
        let answer = ask(gateway.admin(), "GET", "/v1/status", &bearer(token));
        let code = answer
            .status()
            .filter(|status| *status != 200)
            .map(|_| document(&answer)["code"].clone());
        (answer.status().unwrap(), code.map(|code| code.as_str().unwrap().to_owned()))
    };
    let refused = |code: &str| (401, Some(code.to_owned()));
    assert_eq!(asks(&token(1, "ana", true, in_seconds(60))), (200, None));
    assert_eq!(asks(&token(1, "ana", true, in_seconds(-2))), refused("expired"));
    assert_eq!(asks(&token(2, "ana", true, in_seconds(60))), refused("unauthorised"));
    for wrong in ["", "v1", "v1.9.d.YQ.", &"x".repeat(2000)] {
        assert_eq!(asks(wrong), refused("unauthorised"), "{wrong}");
    }
    // With another key all tokens are invalid at once.
    write_key(&key, 2);
    assert_eq!(asks(&token(1, "ana", true, in_seconds(60))), refused("unauthorised"));
    assert_eq!(asks(&token(2, "ana", true, in_seconds(60))), (200, None));
    // A key that every user may read, or that is gone, admits nobody.
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(asks(&token(2, "ana", true, in_seconds(60))), refused("unauthorised"));
    std::fs::remove_file(&key).unwrap();
    assert_eq!(asks(&token(2, "ana", true, in_seconds(60))), refused("unauthorised"));
    assert_eq!(ask(gateway.admin(), "GET", "/livez", "").status(), Some(200));
}

#[test]
fn without_a_key_nobody_is_let_in_on_loopback() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).unset("listen.operators_key").start();
    let answer =
        ask(gateway.admin(), "GET", "/v1/status", &bearer(&token(7, "a", true, in_seconds(9))));
    assert_eq!(answer.status(), Some(401));
    assert!(answer.text().contains("listen.operators_key"), "{}", answer.text());
}

#[test]
fn who_only_reads_decides_nothing() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    let reads = token(7, "the wall", false, in_seconds(60));
    assert_eq!(ask(address, "GET", "/v1/policy", &bearer(&reads)).status(), Some(200));
    let fields = format!("Host: {address}\r\n{}Bywash-Admin: 1\r\n", bearer(&reads));
    let body = json!({ "on": true, "why": "so" }).to_string();
    assert_eq!(says_with(address, &fields, "/v1/bypass", &body).status(), Some(403));
    // A preview decides nothing, so this token may ask for it. The status is 404 and not 403,
    // because there is no elephant 1.
    assert_eq!(says_with(address, &fields, "/v1/elephants/1/preview", "{}").status(), Some(404));
}

#[test]
fn what_is_said_is_read_strictly_and_within_bounds() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    let fields = format!(
        "Host: {address}\r\n{}Bywash-Admin: 1\r\n",
        bearer(&token(7, "ana", true, in_seconds(60)))
    );
    let long = format!(r#"{{"on": true, "why": "{}"}}"#, "x".repeat(20_000));
    for body in ["", "{", "[]", "null", r#"{"on": true, "on": false, "why": "so"}"#, &long, "\u{0}"]
    {
        let answer = says_with(address, &fields, "/v1/bypass", body);
        assert_eq!(answer.status(), Some(400), "{}", answer.text());
        assert!(!answer.text().contains("struct"), "{}", answer.text());
    }
    let mut wire = Wire::connect(address);
    wire.send(format!("POST /v1/bypass HTTP/1.1\r\n{fields}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}"));
    assert_eq!(wire.answer().unwrap().status(), Some(400));
    assert_eq!(gateway.status()["mode"], "enforce");
}

#[test]
fn the_console_is_served_to_whoever_comes_by_a_loopback_name_and_runs_nothing_else() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/console.js", "text/javascript; charset=utf-8"),
        ("/console.css", "text/css; charset=utf-8"),
        ("/favicon.svg", "image/svg+xml"),
    ] {
        let answer = ask(address, "GET", path, "");
        assert_eq!(
            (answer.status(), answer.field("content-type")),
            (Some(200), Some(kind)),
            "{path}"
        );
        let policy = answer.field("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        let packed = ask(address, "GET", path, "Accept-Encoding: br, gzip\r\n");
        assert_eq!(packed.field("content-encoding"), Some("gzip"));
        assert!(packed.body.starts_with(&[0x1f, 0x8b]), "{path}");
    }
    let answer = ask(address, "GET", "/", "").text();
    assert!(answer.contains("console.js"), "{answer}");
    let mut wire = Wire::connect(address);
    wire.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(wire.answer().unwrap().status(), Some(403));
    assert_eq!(ask(address, "POST", "/console.js", "").status(), Some(405));
}

/// Begins to watch this target with this token.
fn watches(address: std::net::SocketAddr, target: &str, token: &str) -> Wire {
    let mut wire = Wire::connect(address);
    wire.send(format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{}\r\n", bearer(token)));
    assert_eq!(wire.head().unwrap().status(), Some(200));
    wire
}

#[test]
fn who_watches_is_let_out_with_the_token_and_with_the_key() {
    let upstream = Upstream::echo();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("operators.key");
    write_key(&key, 1);
    let own = Setup::before(&upstream).set("listen.operators_key", &format!("'{}'", key.display()));
    let gateway = own.start();
    let address = gateway.admin();
    let brief = ["/v1/events", "/v1/tap"]
        .map(|target| watches(address, target, &token(1, "ana", true, in_seconds(4))));
    // Each stream ends when its token expires. Read it to its end.
    for mut wire in brief {
        drop(wire.rest());
    }
    let long = ["/v1/events", "/v1/tap"]
        .map(|target| watches(address, target, &token(1, "ana", true, in_seconds(3600))));
    write_key(&key, 2);
    for mut wire in long {
        drop(wire.rest());
    }
}

#[test]
fn a_gateway_shows_that_it_has_the_key_before_a_token_is_sent() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    let nonce = "0123456789abcdef0123456789abcdef";
    let answer = ask(address, "GET", &format!("/v1/proof?nonce={nonce}"), "");
    let proof = document(&answer)["proof"].as_str().unwrap().to_owned();
    assert!(keys(7).is_proof(nonce, &address.to_string(), &proof));
    assert!(!keys(6).is_proof(nonce, &address.to_string(), &proof));
    for wrong in ["", "?nonce=", "?nonce=0123", "?nonce=zz23456789abcdef0123456789abcdef", "?n=1"] {
        assert_eq!(ask(address, "GET", &format!("/v1/proof{wrong}"), "").status(), Some(400));
    }
}

#[test]
fn strangers_who_hold_connections_keep_nobody_out() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    let mut known = Wire::connect(address);
    let fields = bearer(&token(7, "ana", true, in_seconds(60)));
    let asks = format!("GET /v1/status HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n");
    known.send(&asks);
    assert_eq!(known.answer().unwrap().status(), Some(200));
    let strangers: Vec<Wire> = (0..300).map(|_| Wire::connect(address)).collect();
    assert_eq!(ask(address, "GET", "/readyz", "").status(), Some(200));
    assert_eq!(ask(address, "GET", "/v1/status", &fields).status(), Some(200));
    known.send(&asks);
    assert_eq!(known.answer().unwrap().status(), Some(200), "who is known stays");
    drop(strangers);
}

#[test]
fn three_hundred_watchers_keep_neither_probes_nor_decisions_out() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    let reads = bearer(&token(7, "a screen on the wall", false, in_seconds(600)));
    let mut watchers = Vec::new();
    let mut refused = 0;
    for _ in 0..300 {
        let mut wire = Wire::connect(address);
        wire.send(format!("GET /v1/events HTTP/1.1\r\nHost: {address}\r\n{reads}\r\n"));
        let head = wire.head().expect("an answer, and not a closed connection");
        if head.status() == Some(503) {
            refused += 1;
        } else {
            assert_eq!(head.status(), Some(200));
        }
        watchers.push(wire);
    }
    assert_eq!(refused, 300 - 16, "one name has a small share");
    for probe in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(ask(address, "GET", probe, "").status(), Some(200), "{probe}");
    }
    let refusal = ask(address, "GET", "/v1/events", &reads);
    assert!(refusal.text().contains("you already have 16 connections"), "{}", refusal.text());
    let refusal = ask(address, "GET", "/v1/tap", &reads);
    assert_eq!(refusal.status(), Some(503), "a tap watches too");
    // Other operators can still watch, and decide.
    drop(self::watches(address, "/v1/events", &token(7, "ana", true, in_seconds(60))));
    let fields = format!(
        "Host: {address}\r\n{}Bywash-Admin: 1\r\n",
        bearer(&token(7, "ana", true, in_seconds(60)))
    );
    let body = json!({ "on": true, "why": "so" }).to_string();
    assert_eq!(says_with(address, &fields, "/v1/bypass", &body).status(), Some(200));
    // Watchers of many names together have only a share of the connections, so probes and decisions
    // are still answered.
    for name in 0..20 {
        let fields = bearer(&token(7, &format!("operator {name}"), false, in_seconds(600)));
        for _ in 0..15 {
            let mut wire = Wire::connect(address);
            wire.send(format!("GET /v1/events HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n"));
            let status = wire.head().expect("an answer").status();
            assert!(matches!(status, Some(200 | 503)), "{status:?}");
            watchers.push(wire);
        }
    }
    assert_eq!(ask(address, "GET", "/livez", "").status(), Some(200));
    assert_eq!(says_with(address, &fields, "/v1/bypass", &body).status(), Some(200));
}

#[test]
fn connections_of_operators_that_ask_for_nothing_keep_nobody_out() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let address = gateway.admin();
    let fields = bearer(&token(7, "ana", true, in_seconds(60)));
    let idle: Vec<Wire> = (0..300)
        .map(|_| {
            let mut wire = Wire::connect(address);
            wire.send(format!("GET /v1/policy HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n"));
            assert_eq!(wire.answer().unwrap().status(), Some(200));
            wire
        })
        .collect();
    assert_eq!(ask(address, "GET", "/livez", "").status(), Some(200));
    drop(idle);
}

#[test]
fn what_nothing_can_match_is_refused_with_what_there_is() {
    let upstream = Upstream::echo();
    let gateway =
        Setup::before(&upstream).set("class.search", "{ match = ['GET /search'] }").start();
    let fields = bearer(&token(7, "ana", true, in_seconds(60)));
    for (filter, there_is) in [
        ("outcome=nonsense", "served, late, shed"),
        ("class=nope", "search, other"),
        ("reason=nope", "slot_free"),
        ("standing=nope", "in_progress"),
        ("decision=nope", "run, shed, stop, wait"),
        ("level=nope", "none"),
        ("class=%E2%80%AE", "\\u{202e}"),
    ] {
        for path in ["/v1/tap", "/v1/requests"] {
            let answer = ask(gateway.admin(), "GET", &format!("{path}?{filter}"), &fields);
            assert_eq!(answer.status(), Some(400), "{filter}");
            let detail = document(&answer)["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(there_is), "{filter}: {detail}");
        }
    }
    assert_eq!(
        ask(gateway.admin(), "GET", "/v1/requests?outcome=served", &fields).status(),
        Some(200)
    );
}

#[test]
fn a_result_that_is_too_large_is_not_said_to_be_missing() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let huge = std::fs::File::create(folder.path().join("huge.json")).unwrap();
    huge.set_len((8 << 20) + 1).unwrap();
    let setup =
        Setup::before(&upstream).set("console.results", &format!("'{}'", folder.path().display()));
    let gateway = setup.start();
    let fields = bearer(&token(7, "ana", true, in_seconds(60)));
    let answer = ask(gateway.admin(), "GET", "/v1/lab/huge.json", &fields);
    assert_eq!(answer.status(), Some(413), "{}", answer.text());
    assert_eq!(document(&answer)["code"], "too_large");
    assert_eq!(ask(gateway.admin(), "GET", "/v1/lab/none.json", &fields).status(), Some(404));
}
