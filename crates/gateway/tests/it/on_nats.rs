//! Tests of gateways that are a fleet, over real NATS servers, which `make test-fleet` starts. Without
//! the variable `BYWASH_NATS` the tests report `NOT TESTED` and pass.

use std::path::Path;
use std::time::{Duration, Instant};

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

fn are_in_contact(gateways: &[Running]) -> bool {
    gateways.iter().all(|gateway| {
        let fleet = get(gateway, "/v1/fleet");
        let others = fleet["gateways"].as_array().unwrap();
        others.iter().filter(|other| other["is_current"] == true).count() == gateways.len()
    })
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
fn documents_of_each_gateway_are_read_at_any() {
    let (upstream, _calls) = Upstream::by_hand();
    let folder = tempfile::tempdir().unwrap();
    let Some(gateways) = pair(&upstream, folder.path(), "read") else { return };
    for name in ["one", "two"] {
        assert_eq!(get(&gateways[0], &format!("/v1/fleet/{name}/status"))["fleet"], name);
        for what in ["sessions", "elephants", "policy"] {
            assert!(get(&gateways[0], &format!("/v1/fleet/{name}/{what}")).is_object());
        }
    }
    let status = |path| admin(gateways[0].admin(), path).status();
    assert_eq!(status("/v1/fleet/three/status"), Some(503));
    assert_eq!(status("/v1/fleet/four/status"), Some(404));
}
