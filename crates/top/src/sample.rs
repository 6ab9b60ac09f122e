//! Sample data for tests: a gateway with two classes and an elephant.

use bywash_api::{Elephant, Elephants, Policy, Request};
use bywash_history::{ClassSums, OutcomeCounts, Sums, WindowSums};
use serde_json::json;

use super::feed::Answers;
use super::model::Model;
use super::rows::tests::seconds;
use crate::args::Window;

pub(super) fn elephant(pattern: &str) -> Elephant {
    serde_json::from_value(json!({
        "number": 1, "pattern": pattern, "since": "2026-01-02T03:04:05Z", "seen": "2026-01-02T03:04:05Z",
        "state": "proposed", "revision": 77, "trial": null,
        "found": {
            "pattern": pattern, "twins": [], "resource": "processors", "consists_of": "processors", "capacity": 2.0,
            "used": 0.9, "cost": 0.25, "interval": [0.2, 0.3], "share": 0.7, "rate": 5.0, "lasts": 0.4,
            "provisional": false, "by_one": 0.02, "transacts": false, "correlation": null
        },
        "proposed": { "max_concurrency": 2, "queue": 10, "wait": "5s" }, "effect": null, "unpredicted": null, "lanes": null,
        "waiting": null, "running": null, "within": null
    }))
    .unwrap()
}

pub(super) fn policy() -> Policy {
    let class = |name, tier, mode, enforce_percent, overridden: Option<u32>| {
        json!({
            "name": name, "tier": tier, "matches": [], "utility": 1.0, "patience_ms": null, "cancellable": false,
            "mode": mode, "enforce_percent": enforce_percent, "file_mode": "observe", "file_enforce_percent": 100, "overridden": overridden
        })
    };
    let none = json!({ "name": "fixed", "parameters": {} });
    serde_json::from_value(json!({
        "revision": 9, "file": null, "read_ms": 0, "mode": "observe", "bypassed": false, "kept": false,
        "scheduler": none, "concurrency": none, "terminate": none,
        "classes": [class("confirm", "transaction", "enforce", 10, Some(4)), class("search", "browsing", "observe", 100, None)],
        "overrides": [{
            "number": 4, "target": { "class": { "class": "confirm", "mode": "enforce", "enforce_percent": 10 } }, "by": "bo",
            "why": "election", "since": "2026-01-02T03:04:05Z", "until": "2026-01-02T04:04:05Z"
        }]
    }))
    .unwrap()
}

pub(super) fn request(name: &str, target: &str) -> Request {
    serde_json::from_value(json!({
        "time": 1_700_000_000_000_u64, "client": "10.0.0.1", "status": 503, "request": name, "method": "GET",
        "target": target, "protocol": "HTTP/1.1", "class": "search", "level": null, "session": null, "standing": "new",
        "mode": "enforce", "decision": "shed", "reason": "queue_full", "outcome": "shed", "queue_wait_us": 1500,
        "service_us": 0, "server": null, "rule": null, "request_bytes": 0, "response_bytes": 10
    }))
    .unwrap()
}

/// Returns the sums of a minute in which `served` requests of `class` were served and `shed` were
/// shed. Three quarters of the service time were useful.
pub(super) fn minute(class: &str, served: u64, shed: u64) -> WindowSums {
    let sums = Sums {
        outcomes: OutcomeCounts { served, shed, ..OutcomeCounts::default() },
        useful_ms: 18_000,
        wasted_ms: 6_000,
        p50_ms: Some(80.0),
        p99_ms: Some(200.0),
    };
    WindowSums { length_s: 60.0, all: sums, classes: vec![ClassSums { name: class.into(), sums }] }
}

/// Returns answers with the classes `confirm` and `search`. `search` had four requests per second
/// for a minute: three served, one shed.
pub(super) fn answers() -> Answers {
    let class = |name, tier, mode, enforce_percent, waiting, utility| {
        json!({
            "name": name, "tier": tier, "mode": mode, "enforce_percent": enforce_percent, "utility": utility, "patience_ms": null,
            "waiting": waiting, "outcomes": OutcomeCounts::default()
        })
    };
    let none = json!({ "name": "fixed", "parameters": {} });
    let status = serde_json::from_value(json!({
        "version": "0.1.0", "config_hash": "0123456789abcdef", "mode": "observe", "pid": 7, "draining": false, "uptime_ms": 60000, "limit": 4, "running": 4,
        "waiting": 50, "throttled_waiting": 0, "oldest_wait_ms": 1234, "lifo": true, "mean_service_ms": 80.0, "sessions": 3,
        "connections": 5, "streams": 0, "memory": { "used": 0, "budget": 1, "level": "calm" }, "servers": [], "policy": none, "concurrency_policy": none, "access_log_dropped": 0,
        "classes": [class("confirm", "transaction", "enforce", 10, 0, 5000.0), class("search", "browsing", "observe", 100, 50, 36.0)],
        "revisions": { "elephants": 1, "policy": 2, "audit": 3 }
    }))
    .unwrap();
    let elephants = Elephants { elephants: vec![elephant("/slow")], ..Elephants::default() };
    Answers {
        status,
        window: Window::Minute,
        sums: minute("search", 180, 60),
        rows: seconds(1, 60, 1),
        anew: true,
        elephants: Some(elephants),
        policy: Some(policy()),
        requests: Some(vec![
            request("00000000000000aa", "/search?q=a"),
            request("00000000000000bb", "/search?q=b"),
        ]),
        notes: None,
    }
}

pub(super) fn model() -> Model {
    Model::new(answers())
}
