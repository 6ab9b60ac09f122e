//! Tests of requests that are refused without work.

use serde_json::Value;

use crate::site::Site;

#[test]
fn a_bad_demand_is_refused_and_not_queued() {
    let site = Site::open();
    for demand in ["soon", "-5", "1.5", "60000001", ""] {
        let header = format!("shop-demand-us: {demand}\r\n");
        assert_eq!(site.client().exchange("GET", "/", &header, "").status, 400, "{demand:?}");
    }
    assert!(site.shop.stats().stages.values().all(|stage| stage.received == 0));
}

#[test]
fn a_bad_order_tag_is_refused() {
    let site = Site::open();
    let header = "shop-order-tag: two words\r\n";
    assert_eq!(site.client().exchange("POST", "/confirm", header, "").status, 400);
}

#[test]
fn unknown_paths_and_wrong_methods_have_their_own_answers() {
    let site = Site::open();
    assert_eq!(site.client().get("/nowhere").status, 404);
    assert_eq!(site.client().get("/details?id=99999").status, 404);
    assert_eq!(site.client().get("/details?id=x").status, 404);
    let wrong = site.client().get("/confirm");
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
}

#[test]
fn what_is_too_large_is_refused() {
    let site = Site::open();
    let large = "x".repeat(70_000);
    assert_eq!(site.client().post("/login", &large).status, 413);
    assert_eq!(site.client().get(&format!("/search?q={large}")).status, 414);
    assert_eq!(site.client().post("/login", &large[..65_536]).status, 200);
}

#[test]
fn the_statistics_are_json_with_all_eight_stages() {
    let site = Site::open();
    site.client().get("/browse");
    site.wait_until_settled();
    let reply = site.client().get("/-/stats");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let stats: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(stats["stages"].as_object().unwrap().len(), 8);
    assert_eq!(stats["stages"]["browse"]["answered"], 1);
    assert_eq!((&stats["workers"], &stats["backlog"]), (&8.into(), &511.into()));
}
