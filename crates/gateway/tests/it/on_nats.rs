//! Tests of gateways that are a fleet, over real NATS servers, which `make test-fleet` starts. Without
//! the variable `BYWASH_NATS` the tests report `NOT TESTED` and pass.

use std::path::Path;
use std::time::{Duration, Instant};

use bywash_gateway::Inheritance;
use serde_json::{Value, json};

use crate::operator::{document, says, write_key};
use crate::setup::{Running, Setup, admin};
use crate::upstream::Upstream;

/// The slots of all gateways together.
const LIMIT: u64 = 12;

/// Returns the configuration of a gateway whose fleet has the subject `subject`; `None`, with a line
/// on standard error, if there are no servers.
fn member(upstream: &Upstream, folder: &Path, subject: &str, name: &str) -> Option<Setup> {
    let servers = std::env::var("BYWASH_NATS").ok().filter(|servers| !servers.is_empty());
    if servers.is_none() {
        eprintln!("NOT TESTED: a fleet on NATS (BYWASH_NATS is not set; see `make test-fleet`)");
    }
    let servers: Vec<String> = servers?.split(',').map(str::to_owned).collect();
    let key = folder.join("fleet.keys");
    write_key(&key, 7);
    let state = folder.join(name);
    std::fs::create_dir_all(&state).unwrap();
    Some(
        Setup::before(upstream)
            .limit(LIMIT as u32)
            .set("state.directory", &format!("'{}'", state.display()))
            .set("class.search", "{ match = ['GET /search'] }")
            .set("fleet.name", &format!("'{name}'"))
            .set("fleet.gateways", "['one', 'two', 'three']")
            .set("fleet.servers", &format!("{servers:?}"))
            .set("fleet.subject", &format!("'gateway-{subject}'"))
            .set("fleet.key_file", &format!("'{}'", key.display())),
    )
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn get(gateway: &Running, path: &str) -> Value {
    document(&admin(gateway.admin(), path))
}

fn overrides(gateway: &Running) -> Vec<Value> {
    get(gateway, "/v1/policy")["overrides"].as_array().unwrap().clone()
}

/// Returns whether a gateway hears `count` gateways, itself included.
fn is_in_contact(gateway: &Running, count: usize) -> bool {
    let fleet = get(gateway, "/v1/fleet");
    let others = fleet["gateways"].as_array().unwrap();
    others.iter().filter(|other| other["is_current"] == true).count() == count
}

fn are_in_contact(gateways: &[Running]) -> bool {
    gateways.iter().all(|gateway| is_in_contact(gateway, gateways.len()))
}

/// Returns two gateways of a fleet that are in contact; `None` if there are no servers.
fn pair(upstream: &Upstream, folder: &Path, subject: &str) -> Option<[Running; 2]> {
    let start = |name| Some(member(upstream, folder, subject, name)?.start());
    let gateways = [start("one")?, start("two")?];
    until("they are in contact", || are_in_contact(&gateways));
    Some(gateways)
}

fn observe(gateway: &Running, class: &str) {
    let wanted = json!({ "class": class, "mode": "observe", "why": "too slow", "for": "10m" });
    let answer = says(gateway, "/v1/policy/class", &wanted);
    assert_eq!(answer.status(), Some(200), "{}", answer.text());
}

#[test]
fn a_gateway_starts_with_one_slot_and_then_has_its_share() {
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let Some(setup) = member(&upstream, folder.path(), "share", "one") else { return };
    let gateway = setup.start();
    assert_eq!(gateway.count("limit"), 1);
    until("it has its share", || gateway.count("limit") == LIMIT / 3);
    assert_eq!(gateway.status()["fleet"], "one");
}

#[test]
fn a_decision_holds_at_both_gateways_and_ends_at_both() {
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let Some(gateways) = pair(&upstream, folder.path(), "decided") else { return };
    let [one, two] = &gateways;
    observe(one, "search");
    until("it holds at the second", || overrides(two).len() == 1);
    let there = &overrides(two)[0];
    assert_eq!(there["until"], overrides(one)[0]["until"]);
    let note = get(two, "/v1/audit")["notes"][0].clone();
    assert_eq!([&note["what"], &note["fleet"]["gateway"]], ["overridden", "one"]);
    let undo = json!({ "why": "enough" });
    let answer = says(two, &format!("/v1/policy/{}/undo", there["number"]), &undo);
    assert_eq!(answer.status(), Some(200), "{}", answer.text());
    until("it ends at the first", || overrides(one).is_empty());
    assert_eq!(get(one, "/v1/audit")["notes"][0]["fleet"]["gateway"], "two");
}

#[test]
fn a_decision_about_a_class_that_comes_later_holds_after_the_reload() {
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let setup = |name| member(&upstream, folder.path(), "later", name);
    let with_cart = |setup: Setup| setup.set("class.cart", "{ match = ['GET /cart'] }");
    let (Some(first), Some(second)) = (setup("one"), setup("two")) else { return };
    let gateways = [with_cart(first).start(), second.start()];
    until("they are in contact", || are_in_contact(&gateways));
    let [one, two] = &gateways;
    until("the difference is shown", || {
        get(two, "/v1/fleet")["warnings"][0]
            == "one has another configuration of its policies or classes"
    });
    observe(one, "cart");
    observe(one, "search");
    until("the other decision holds", || overrides(two).len() == 1);
    two.reload(&with_cart(setup("two").unwrap())).unwrap();
    until("both hold", || overrides(two).len() == 2);
    until("the difference is gone", || get(two, "/v1/fleet")["warnings"] == json!([]));
}

#[test]
fn a_gateway_that_has_lost_its_overrides_gets_them_back() {
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let setup = |name| member(&upstream, folder.path(), "lost", name);
    let Some(gateways) = pair(&upstream, folder.path(), "lost") else { return };
    observe(&gateways[0], "search");
    until("it holds at the second", || overrides(&gateways[1]).len() == 1);
    let [one, two] = gateways;
    drop(two);
    let state = folder.path().join("two");
    std::fs::remove_file(state.join("overrides")).unwrap();
    let two = setup("two").unwrap().start();
    // Its own audit log has the decision.
    assert_eq!(overrides(&two).len(), 1);
    drop(two);
    std::fs::remove_dir_all(&state).unwrap();
    let two = setup("two").unwrap().start();
    assert_eq!(overrides(&two).len(), 0);
    until("the first one sends it", || overrides(&two).len() == 1);
    drop(one);
}

#[test]
fn a_decision_about_an_elephant_holds_at_a_gateway_that_starts_later() {
    const FOUND: &str = r#"{"entries": [{"number": 1, "pattern": "/slow", "found": null,
        "since": "2026-01-01T00:00:00Z", "seen": "2100-01-01T00:00:00Z", "state": "proposed",
        "trial": null}], "next": 1}"#;
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let start = |name| {
        let setup = member(&upstream, folder.path(), "elephant", name)?;
        bywash_handover::save(&folder.path().join(name), "elephants", FOUND.as_bytes()).unwrap();
        Some(setup.start())
    };
    let Some(one) = start("one") else { return };
    let answer = says(&one, "/v1/elephants/1/reject", &json!({ "why": "it may be slow" }));
    assert_eq!(answer.status(), Some(200), "{}", answer.text());
    let two = start("two").unwrap();
    let state = |gateway| get(gateway, "/v1/elephants/1")["state"].to_string();
    assert!(state(&two).contains("proposed"), "{}", state(&two));
    until("it holds at the second", || state(&two).contains("rejected"));
    assert_eq!(state(&two), state(&one));
}

#[test]
fn the_process_that_takes_over_knows_the_decisions_of_the_fleet() {
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let Some([one, two]) = pair(&upstream, folder.path(), "upgrade") else { return };
    observe(&one, "search");
    until("it holds at the second", || overrides(&two).len() == 1);
    let known = |gateway: &Running| {
        let learned: Value = serde_json::from_slice(&gateway.gateway().learned()).unwrap();
        learned["fleet"].clone()
    };
    let (learned, before) = (two.gateway().learned(), known(&two));
    drop((one, two));
    // Nothing but the bytes of the former process tells it.
    std::fs::remove_dir_all(folder.path().join("two")).unwrap();
    let alone = member(&upstream, folder.path(), "upgrade-alone", "two").unwrap();
    let from = Inheritance { learned: Some(learned), ..Inheritance::default() };
    let next = alone.try_start_with(from).unwrap();
    assert_eq!(overrides(&next).len(), 1);
    assert_eq!(before.as_array().unwrap().len(), 1);
    assert_eq!(known(&next), before);
}

#[test]
fn a_gateway_learns_from_the_requests_of_the_other() {
    let (upstream, calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let start = |name| {
        let setup = member(&upstream, folder.path(), "learned", name)?;
        let order = "{ match = ['GET /buy'], tier = 'transaction', revenue = 1 }";
        Some(setup.set("class.order", order).start())
    };
    let (Some(one), Some(two)) = (start("one"), start("two")) else { return };
    until("they are in contact", || {
        [&one, &two].into_iter().all(|gateway| is_in_contact(gateway, 2))
    });
    let mut client = one.sends("GET /buy HTTP/1.1\r\nHost: a\r\nCookie: sid=1\r\n\r\n");
    calls.next().answer("");
    client.answer().unwrap();
    let orders = |gateway| get(gateway, "/v1/sessions")["orders"].as_f64().unwrap();
    until("the first has counted it", || orders(&one) > 0.9);
    until("the second has learned it", || orders(&two) > 0.9);
    let mut client = two.sends("GET /buy HTTP/1.1\r\nHost: a\r\nCookie: sid=2\r\n\r\n");
    calls.next().answer("");
    client.answer().unwrap();
    until("both have counted both", || orders(&one) > 1.9 && orders(&two) > 1.9);
    // Each reads the other once a second, so in the time of forty messages several times.
    let received = |gateway| get(gateway, "/v1/fleet")["received"].as_u64().unwrap();
    let before = [&one, &two].map(received);
    until("more messages have come", || {
        [&one, &two].map(received).iter().zip(before).all(|(now, before)| *now > before + 40)
    });
    // A gateway does not count its own order again when the other one gives its counts.
    assert!(orders(&one) < 2.1 && orders(&two) < 2.1, "{} and {}", orders(&one), orders(&two));
    // The third gateway does not run.
    let unread = |gateway| get(gateway, "/v1/elephants")["unread"].clone();
    until("each has read the requests", || {
        [&one, &two].into_iter().all(|gateway| unread(gateway) == json!(["three"]))
    });
}

#[test]
fn documents_of_each_gateway_are_read_at_any() {
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let Some(gateways) = pair(&upstream, folder.path(), "read") else { return };
    for name in ["one", "two"] {
        assert_eq!(get(&gateways[0], &format!("/v1/fleet/{name}/status"))["fleet"], name);
        for what in ["sessions", "elephants", "policy"] {
            assert!(get(&gateways[0], &format!("/v1/fleet/{name}/{what}")).is_object());
        }
        assert_eq!(get(&gateways[0], &format!("/v1/fleet/{name}/history"))["step_s"], 10);
    }
    let status = |path| admin(gateways[0].admin(), path).status();
    assert_eq!(status("/v1/fleet/three/status"), Some(503));
    assert_eq!(status("/v1/fleet/four/status"), Some(404));
}
