//! Tests of requests that are answered without a worker.

use serde_json::Value;
use tempfile::TempDir;

use crate::databases::sqlite;
use crate::site::{Site, named};

#[test]
fn bad_requests_are_told_what_is_wrong_and_are_not_queued() {
    let folder = TempDir::new().unwrap();
    let site = Site::open(&sqlite(folder.path()));
    let large = "x".repeat(70_000);
    for (method, target, body, status, words) in [
        ("GET", "/nowhere", "", 404, "no such page"),
        ("GET", "/cart?id=1", "", 405, "another method"),
        ("POST", "/", "", 405, "another method"),
        ("GET", "/search", "", 400, "q must be"),
        ("GET", "/search?q=a%00b", "", 400, "q must be"),
        ("GET", "/book?id=one", "", 400, "id must be"),
        ("POST", "/cart", "id=-1", 400, "id must be"),
        ("POST", "/cart", large.as_str(), 413, "larger than 64 KiB"),
        ("GET", "/file/x", "", 404, "no such page"),
    ] {
        let reply = site.client().exchange(method, target, "", body);
        assert_eq!(reply.status, status, "{method} {target}");
        assert!(reply.body.contains(words), "{method} {target}: {}", reply.body);
    }
    assert_eq!(site.client().get("/buy").header("allow"), Some("POST"));
    assert!(site.bookstore.stats().services.values().all(|service| service.received == 0));
}

#[test]
fn a_name_that_is_none_is_ignored() {
    let folder = TempDir::new().unwrap();
    let site = Site::open(&sqlite(folder.path()));
    for wrong in ["", "two words", "'*/ drop table books; --", &"x".repeat(129)] {
        let reply = site.client().exchange("GET", "/search?q=harbour", &named(wrong), "");
        assert_eq!(reply.status, 200, "{wrong:?}");
    }
}

#[test]
fn the_statistics_are_json_with_all_seven_services() {
    let folder = TempDir::new().unwrap();
    let site = Site::open(&sqlite(folder.path()));
    site.client().get("/browse");
    site.wait_until_settled();
    let reply = site.client().get("/-/stats");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let stats: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(stats["services"].as_object().unwrap().len(), 7);
    assert_eq!(stats["services"]["browse"]["served"], 1);
    assert_eq!((&stats["workers"], &stats["backlog"]), (&2.into(), &511.into()));
    assert_eq!(
        (&stats["database"]["kind"], &stats["database"]["pages"]),
        (&"sqlite".into(), &1.into())
    );
}
