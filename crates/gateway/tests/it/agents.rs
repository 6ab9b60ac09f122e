//! Tests of automated agents that sign their requests.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bywash_gateway::Inheritance;
use ring::digest::{SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::setup::{Running, Setup, admin};
use crate::upstream::{Upstream, with_fields};

/// An agent with its private key.
struct Agent {
    pair: Ed25519KeyPair,
    /// The folder with the file of its public key.
    folder: TempDir,
}

impl Agent {
    fn new() -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let key = format!(r#"{{"kty": "OKP", "crv": "Ed25519", "x": "{}"}}"#, x(&pair));
        std::fs::write(folder.path().join("keys"), format!(r#"{{"keys": [{key}]}}"#)).unwrap();
        Self { pair, folder }
    }

    /// Returns a site that knows the agent.
    fn site(&self, upstream: &Upstream) -> Setup {
        Setup::before(upstream)
            .set("listen.trusted_proxies", "['127.0.0.0/8']")
            .set("agent.archive.keys", &format!("'{}/keys'", self.folder.path().display()))
    }

    /// Returns fields with a signature for this host that expires after a time in seconds.
    fn signs(&self, host: &str, expires: i64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, x(&self.pair));
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()));
        let input = format!(
            "(\"@authority\");created={};expires={};keyid=\"{id}\";tag=\"web-bot-auth\"",
            now - 60,
            now + expires
        );
        let base = format!("\"@authority\": {host}\n\"@signature-params\": {input}");
        let signature = STANDARD.encode(self.pair.sign(base.as_bytes()));
        format!("Signature-Input: a={input}\r\nSignature: a=:{signature}:\r\n")
    }
}

fn x(pair: &Ed25519KeyPair) -> String {
    URL_SAFE_NO_PAD.encode(pair.public_key())
}

fn request(address: u8, fields: &str) -> String {
    request_for("/", address, fields)
}

fn request_for(target: &str, address: u8, fields: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 192.0.2.{address}\r\n{fields}\r\n"
    )
}

fn json_of(gateway: &Running, path: &str) -> Value {
    crate::operator::document(&admin(gateway.admin(), path))
}

#[test]
fn all_requests_that_an_agent_signed_are_of_one_population() {
    let (agent, upstream) = (Agent::new(), Upstream::app(|_| with_fields("", "page")));
    let gateway = agent.site(&upstream).start();
    for address in 1..=3 {
        let fields = format!("User-Agent: {address}{address}\r\n{}", agent.signs("a.example", 60));
        gateway.sends(request(address, &fields)).answer().unwrap();
        gateway.is_idle_again();
    }
    let found = json_of(&gateway, "/v1/populations");
    assert_eq!(found["count"], 1, "{found}");
    let population = &found["populations"][0];
    assert_eq!((&population["agent"], &population["level"]), (&"archive".into(), &1.into()));
    let requests = json_of(&gateway, "/v1/requests");
    let last = &requests["requests"][0];
    assert_eq!((&last["agent"], &last["population"]), (&"archive".into(), &population["name"]));
    let metrics = admin(gateway.admin(), "/metrics").text();
    assert!(metrics.contains("bywash_agent_signatures_total{what=\"good\"} 3"), "{metrics}");
}

#[test]
fn a_request_with_a_signature_that_proves_nothing_is_served_as_if_it_had_none() {
    let (agent, upstream) = (Agent::new(), Upstream::app(|_| with_fields("", "page")));
    let gateway = agent.site(&upstream).start();
    for fields in [agent.signs("b.example", 60), agent.signs("a.example", -1)] {
        let answer = gateway.sends(request(1, &fields)).answer().unwrap();
        assert_eq!(answer.status(), Some(200));
        gateway.is_idle_again();
    }
    let requests = json_of(&gateway, "/v1/requests");
    assert_eq!(requests["requests"][0]["agent"], Value::Null);
    let found = json_of(&gateway, "/v1/populations");
    assert_eq!(found["populations"][0]["agent"], Value::Null, "{found}");
    let metrics = admin(gateway.admin(), "/metrics").text();
    for what in ["forged", "expired"] {
        let line = format!("bywash_agent_signatures_total{{what=\"{what}\"}} 1");
        assert!(metrics.contains(&line), "{metrics}");
    }
}

/// The number of forged requests: far more than are verified in the time in which all are answered.
const REQUESTS: usize = 2000;

#[test]
fn a_flood_of_forged_signatures_is_not_verified_to_its_end() {
    let (agent, upstream) = (Agent::new(), Upstream::app(|_| with_fields("", "page")));
    let gateway = agent.site(&upstream).start();
    let forged = request(1, &agent.signs("b.example", 60));
    let mut client = gateway.sends(forged.repeat(REQUESTS));
    for _ in 0..REQUESTS {
        assert_eq!(client.answer().unwrap().status(), Some(200));
    }
    let metrics = admin(gateway.admin(), "/metrics").text();
    let unchecked = metrics.lines().find(|line| line.contains("{what=\"unchecked\"}")).unwrap();
    let unchecked: f64 = unchecked.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(unchecked > 0.0, "{metrics}");
}

#[test]
fn an_agent_waits_behind_readers_and_counts_as_one_client() {
    let agent = Agent::new();
    let (upstream, calls) = Upstream::by_hand();
    let gateway = agent.site(&upstream).limit(1).set("scheduler.principal_cap", "2").start();
    let signed = agent.signs("a.example", 60);
    let _running = gateway.sends(request(1, ""));
    let first = calls.next();
    let _waits = [2, 3].map(|address| gateway.sends(request(address, &signed)));
    gateway.waits_for("waiting", 2);
    let mut third = gateway.sends(request(4, &signed));
    assert_eq!(third.answer().unwrap().status(), Some(429), "whatever its address is");
    let _reader = gateway.sends(request_for("/reader", 5, "User-Agent: reader\r\n"));
    gateway.waits_for("waiting", 3);
    first.answer("");
    assert_eq!(calls.next().target(), "/reader");
}

/// Returns a saved state with a day in which nothing ran, up to now.
fn after_a_quiet_day(state: &[u8]) -> Vec<u8> {
    const MINUTES: u64 = 24 * 60;
    let mut state: Value = serde_json::from_slice(state).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let minutes = &mut state["history"]["minutes"];
    for (name, column) in minutes.as_object_mut().unwrap() {
        let value = |minute: u64| match name.as_str() {
            "number" => json!(minute),
            "at_ms" => json!(now - (MINUTES - minute) * 60_000),
            "lifo" | "bypassed" => json!(false),
            "limit" => json!(1),
            _ => json!(0),
        };
        if name != "step_s" && name != "classes" {
            *column = (0..MINUTES).map(value).collect();
        }
    }
    serde_json::to_vec(&state).unwrap()
}

/// Waits until no quarter of an hour begins within the next five seconds.
fn away_from_a_quarter() {
    const QUARTER: u64 = 15 * 60;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    if now % QUARTER > QUARTER - 6 {
        std::thread::sleep(std::time::Duration::from_secs(6));
    }
}

#[test]
fn a_refused_agent_is_told_when_the_site_will_be_quiet() {
    let agent = Agent::new();
    let (upstream, calls) = Upstream::by_hand();
    let site = agent.site(&upstream).limit(1).set("scheduler.capacity", "1");
    let learned = after_a_quiet_day(&site.start().gateway().learned());
    let from = Inheritance { learned: Some(learned), ..Inheritance::default() };
    let gateway = site.try_start_with(from).unwrap();
    let signed = agent.signs("a.example", 60);
    // The agent was served before, so it has a visit.
    let mut served = gateway.sends(request(9, &signed));
    calls.next().answer("");
    served.answer().unwrap();
    gateway.is_idle_again();
    away_from_a_quarter();
    let _running = gateway.sends(request(1, ""));
    let first = calls.next();
    let _reader = gateway.sends(request_for("/reader", 2, "User-Agent: reader\r\n"));
    gateway.waits_for("waiting", 1);
    for _ in 0..2 {
        let answer = gateway.sends(request(3, &signed)).answer().unwrap();
        assert_eq!(answer.status(), Some(429), "{}", answer.text());
        let seconds: u64 = answer.field("retry-after").unwrap().parse().unwrap();
        // The next quarter of an hour, and half of the hour that is quiet then.
        assert!((1..=45 * 60).contains(&seconds), "{seconds}");
    }
    let found = json_of(&gateway, "/v1/populations");
    let agents = found["populations"].as_array().unwrap().iter();
    let agents = agents.filter(|one| one["agent"] == "archive");
    let mut agents: Vec<_> = agents.map(|one| (&one["appointment"], &one["level"])).collect();
    agents.sort_by_key(|(_, level)| level.as_u64());
    assert_eq!(agents, [(&Value::Null, &json!(1)), (&json!("early"), &json!(7))], "{found}");
    first.answer("");
    assert_eq!(calls.next().target(), "/reader");
}

#[test]
fn a_refusal_that_is_not_due_to_the_load_makes_no_appointment() {
    let agent = Agent::new();
    let (upstream, calls) = Upstream::by_hand();
    let site = agent.site(&upstream).limit(1).set("scheduler.principal_cap", "1");
    let learned = after_a_quiet_day(&site.start().gateway().learned());
    let from = Inheritance { learned: Some(learned), ..Inheritance::default() };
    let gateway = site.try_start_with(from).unwrap();
    let signed = agent.signs("a.example", 60);
    let _running = gateway.sends(request(1, ""));
    let _call = calls.next();
    let _waits = gateway.sends(request(2, &signed));
    gateway.waits_for("waiting", 1);
    for _ in 0..2 {
        let answer = gateway.sends(request(3, &signed)).answer().unwrap();
        assert_eq!(answer.status(), Some(429), "{}", answer.text());
    }
    let found = json_of(&gateway, "/v1/populations");
    let of_agent = |one: &&Value| one["agent"] == "archive";
    let agents: Vec<_> = found["populations"].as_array().unwrap().iter().filter(of_agent).collect();
    assert_eq!(agents.len(), 1, "{found}");
    assert_eq!(agents[0]["appointment"], Value::Null);
}
