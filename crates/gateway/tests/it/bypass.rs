//! Switching every decision off, and on again, while it runs.

use crate::setup::{Running, Setup, admin, eventually};
use crate::upstream::Upstream;
use crate::wire::{Message, Wire};

/// What the admin listener says to this.
fn post(gateway: &Running, target: &str, fields: &str) -> Message {
    let address = gateway.admin();
    let mut wire = Wire::connect(address);
    wire.send(format!(
        "POST {target} HTTP/1.1\r\nHost: {address}\r\n{fields}Connection: close\r\n\r\n"
    ));
    wire.answer().unwrap()
}

const FIELD: &str = "Bywash-Admin: 1\r\n";

#[test]
fn a_post_switches_it_on_and_off() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let answer = post(&gateway, "/v1/bypass?on=true", FIELD);
    assert_eq!(answer.status(), Some(200));
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(status["mode"], "bypass");
    assert_eq!(gateway.metric("bywash_bypassed"), 1.0);
    // The only slot is taken, and nobody asks for one.
    let mut through = gateway.asks("/through");
    calls.next().answer("through");
    assert_eq!(through.answer().unwrap().text(), "through");
    assert_eq!(post(&gateway, "/v1/bypass?on=false", FIELD).status(), Some(200));
    assert_eq!(gateway.status()["mode"], "enforce");
    let _waits = gateway.asks("/waits");
    gateway.waits_for("waiting", 1);
    assert!(calls.is_empty());
}

#[test]
fn a_page_in_a_browser_cannot_switch_it_on() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    for fields in
        ["", "Content-Type: text/plain\r\nOrigin: http://evil.example\r\n", "X-Bywash-Admin: 1\r\n"]
    {
        assert_eq!(post(&gateway, "/v1/bypass?on=true", fields).status(), Some(403), "{fields}");
    }
    let mut wire = Wire::connect(gateway.admin());
    wire.send(format!("POST /v1/bypass?on=true HTTP/1.1\r\nHost: evil.example\r\n{FIELD}\r\n"));
    assert_eq!(wire.answer().unwrap().status(), Some(403));
    assert_eq!(admin(gateway.admin(), "/v1/bypass?on=true").status(), Some(404));
    assert_eq!(gateway.status()["mode"], "enforce");
}

#[test]
fn what_means_nothing_changes_nothing() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    for (target, status) in [
        ("/v1/bypass", 400),
        ("/v1/bypass?on=1", 400),
        ("/v1/bypass?on=TRUE", 400),
        ("/v1/bypass?off=true", 400),
        ("/v1/status", 404),
        ("/v1/bypass/", 404),
    ] {
        assert_eq!(post(&gateway, target, FIELD).status(), Some(status), "{target}");
    }
    assert_eq!(gateway.status()["mode"], "enforce");
}

#[test]
fn what_ran_before_and_what_runs_meanwhile_ends_as_it_should() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut before = gateway.asks("/before");
    let first = calls.next();
    post(&gateway, "/v1/bypass?on=true", FIELD);
    let mut meanwhile = gateway.asks("/meanwhile");
    let second = calls.next();
    post(&gateway, "/v1/bypass?on=false", FIELD);
    assert_eq!(gateway.count("running"), 1);
    second.answer("2");
    assert_eq!(meanwhile.answer().unwrap().text(), "2");
    assert_eq!(gateway.count("running"), 1);
    first.answer("1");
    assert_eq!(before.answer().unwrap().text(), "1");
    gateway.is_idle_again();
    eventually("both are counted", || gateway.outcome("served") == 2);
}

#[test]
fn a_bypass_that_is_switched_on_spares_who_runs() {
    let (upstream, calls) = Upstream::by_hand();
    let search =
        "{ match = ['GET /search'], safe = 'read-only', run_min = '50ms', run_max = '1s' }";
    let fixed = Setup::before(&upstream).limit(1).set("terminate.policy", "'fixed'");
    let gateway = fixed.set("class.search", search).start();
    let mut long = gateway.asks("/search");
    let call = calls.next();
    post(&gateway, "/v1/bypass?on=true", FIELD);
    // This is how long it may not run.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    call.answer("long");
    assert_eq!(long.answer().unwrap().text(), "long");
    post(&gateway, "/v1/bypass?on=false", FIELD);
    let mut stopped = gateway.asks("/search");
    let _call = calls.next();
    assert_eq!(stopped.answer().unwrap().status(), Some(504));
}
