//! Tests of the bypass, which turns all decisions off and on while the gateway runs.

use serde_json::{Value, json};

use crate::operator::{document, fields, says, says_with};
use crate::setup::{Running, Setup, admin, eventually};
use crate::upstream::Upstream;
use crate::wire::Message;

fn bypass(gateway: &Running, on: bool) -> Message {
    says(gateway, "/v1/bypass", &json!({ "on": on, "why": "to see what it is like without" }))
}

#[test]
fn a_post_switches_it_on_and_off() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let answer = bypass(&gateway, true);
    assert_eq!(answer.status(), Some(200));
    let policy = document(&answer);
    assert_eq!(policy["bypassed"], true);
    assert_eq!(
        (&policy["overrides"][0]["target"], &policy["overrides"][0]["by"]),
        (&"bypass".into(), &"ana".into())
    );
    assert_eq!(gateway.status()["mode"], "bypass");
    assert_eq!(gateway.metric("bywash_bypassed"), 1.0);
    // The only slot is taken, but a bypassed request needs none.
    let mut through = gateway.asks("/through");
    calls.next().answer("through");
    assert_eq!(through.answer().unwrap().text(), "through");
    assert_eq!(bypass(&gateway, false).status(), Some(200));
    assert_eq!(gateway.status()["mode"], "enforce");
    let _waits = gateway.asks("/waits");
    gateway.waits_for("waiting", 1);
    assert!(calls.is_empty());
}

#[test]
fn a_page_in_a_browser_cannot_switch_it_on() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let (address, body) = (gateway.admin(), r#"{"on": true, "why": "so"}"#);
    let fields = fields(address);
    let own = format!("{fields}Bywash-Admin: 1\r\n");
    for others in [
        fields.clone(),
        format!("{fields}X-Bywash-Admin: 1\r\n"),
        format!("{own}Origin: http://evil.example\r\n"),
        format!("{own}Origin: null\r\n"),
        format!("{own}Origin: http://127.0.0.1:1\r\n"),
        format!("{own}Sec-Fetch-Site: cross-site\r\n"),
        format!("{own}Sec-Fetch-Site: same-site\r\n"),
        own.replace(&address.to_string(), "evil.example"),
    ] {
        let answer = says_with(address, &others, "/v1/bypass", body);
        assert_eq!(answer.status(), Some(403), "{others}");
    }
    assert_eq!(admin(address, "/v1/bypass").status(), Some(405));
    assert_eq!(gateway.status()["mode"], "enforce");
    let console = format!("{own}Origin: http://{address}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(says_with(address, &console, "/v1/bypass", body).status(), Some(200));
}

#[test]
fn what_means_nothing_changes_nothing() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let why = "so";
    for (target, body, status) in [
        ("/v1/bypass", json!({}), 400),
        ("/v1/bypass", json!({ "on": 1, "why": why }), 400),
        ("/v1/bypass", json!({ "on": true }), 400),
        ("/v1/bypass", json!({ "on": true, "why": "" }), 400),
        ("/v1/bypass", json!({ "on": true, "why": why, "off": true }), 400),
        ("/v1/bypass", json!({ "on": true, "why": why, "for": "1s" }), 400),
        ("/v1/bypass", json!({ "on": true, "why": why, "for": "ever" }), 400),
        ("/v1/bypass", json!({ "on": true, "why": why, "revision": 7 }), 409),
        ("/v1/bypass?on=true", json!({ "on": true, "why": why }), 400),
        ("/v1/bypass", json!({ "on": true, "why": why, "by": "eve" }), 403),
        ("/v1/status", json!({}), 405),
        ("/v1/bypass/", json!({}), 404),
    ] {
        let answer = says(&gateway, target, &body);
        assert_eq!(answer.status(), Some(status), "{target} {body} {}", answer.text());
        assert_eq!(answer.field("content-type"), Some("application/problem+json"));
    }
    assert_eq!(gateway.status()["mode"], "enforce");
}

#[test]
fn who_is_not_bypassed_may_be_told_so_again() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    assert_eq!(bypass(&gateway, false).status(), Some(200));
    // An operator can also end a bypass that the process was started with. A stale revision or an
    // empty reason is refused.
    gateway.gateway().bypass(true);
    bypass(&gateway, true);
    for body in
        [json!({ "on": false, "why": "so", "revision": 1 }), json!({ "on": false, "why": "" })]
    {
        let refused = says(&gateway, "/v1/bypass", &body).status();
        assert!(matches!(refused, Some(400 | 409)), "{refused:?}");
        assert_eq!(gateway.status()["mode"], "bypass");
    }
    assert_eq!(document(&bypass(&gateway, false))["bypassed"], false);
    assert_eq!(
        document(&admin(gateway.admin(), "/v1/policy"))["overrides"],
        Value::Array(Vec::new())
    );
}

#[test]
fn what_ran_before_and_what_runs_meanwhile_ends_as_it_should() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut before = gateway.asks("/before");
    let first = calls.next();
    bypass(&gateway, true);
    let mut meanwhile = gateway.asks("/meanwhile");
    let second = calls.next();
    bypass(&gateway, false);
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
        "{ match = ['GET /search'], cancellable = true, run_min = '50ms', run_max = '1s' }";
    let fixed = Setup::before(&upstream).limit(1).set("terminate.policy", "'fixed'");
    let gateway = fixed.set("class.search", search).start();
    let mut long = gateway.asks("/search");
    let call = calls.next();
    bypass(&gateway, true);
    // The sleep is longer than the request may run.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    call.answer("long");
    assert_eq!(long.answer().unwrap().text(), "long");
    bypass(&gateway, false);
    let mut stopped = gateway.asks("/search");
    let _call = calls.next();
    assert_eq!(stopped.answer().unwrap().status(), Some(504));
}
