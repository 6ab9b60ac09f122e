//! Tests of the history for operators: it is recorded, reported, and followed without gaps.

use serde_json::Value;

use crate::operator::fields;
use crate::setup::{Running, Setup, admin, eventually};
use crate::upstream::Upstream;
use crate::wire::Wire;
use bywash_gateway::Inheritance;

pub(crate) fn history(gateway: &Running, range: &str) -> Value {
    serde_json::from_slice(&admin(gateway.admin(), &format!("/v1/history{range}")).body).unwrap()
}

/// Returns the sum of a class's column over all rows.
pub(crate) fn sum(history: &Value, class: &str, column: &str) -> u64 {
    let classes = history["classes"].as_array().unwrap();
    let Some(class) = classes.iter().find(|of| of["name"] == class) else { return 0 };
    let list = class.pointer(&format!("/{column}")).unwrap().as_array().unwrap();
    list.iter().map(|count| count.as_u64().unwrap()).sum()
}

/// Begins to follow the history after the event with the id `seen`.
fn follow(gateway: &Running, seen: Option<&str>) -> Wire {
    let address = gateway.admin();
    let mut wire = Wire::connect(address);
    let seen = seen.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    wire.send(format!("GET /v1/events HTTP/1.1\r\n{}{seen}\r\n", fields(address)));
    let head = wire.head().unwrap();
    let kind = head.field("content-type");
    assert_eq!((head.status(), kind), (Some(200), Some("text/event-stream")));
    wire
}

/// Returns id, name and rows of the next event with rows.
fn event(wire: &mut Wire) -> (String, String, Value) {
    loop {
        let text = next(wire);
        let lines: Vec<&str> = text.split('\n').collect();
        if let [id, name, rows, "", ""] = lines[..] {
            let value = |line: &str, field: &str| line.strip_prefix(field).unwrap().to_owned();
            let rows = serde_json::from_str(&value(rows, "data: ")).unwrap();
            return (value(id, "id: "), value(name, "event: "), rows);
        }
        assert!(text.starts_with("event: changed\ndata: {"), "{text}");
    }
}

fn next(wire: &mut Wire) -> String {
    let size = usize::from_str_radix(&wire.line().unwrap(), 16).unwrap();
    let text = String::from_utf8(wire.bytes(size).unwrap()).unwrap();
    assert_eq!(wire.bytes(2).unwrap(), b"\r\n");
    text
}

fn numbers(rows: &Value) -> Vec<u64> {
    rows["number"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn what_became_of_requests_is_told_second_by_second() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream)
        .set("class.shop", "{ match = ['GET /shop'], revenue = 5 }")
        .start();
    (0..3).for_each(|_| drop(gateway.get("/shop")));
    gateway.get("/else");
    eventually("they are counted", || sum(&history(&gateway, ""), "shop", "outcomes/served") == 3);
    let document = history(&gateway, "?range=15m");
    assert_eq!(sum(&document, "other", "outcomes/served"), 1);
    let shop =
        document["classes"].as_array().unwrap().iter().find(|of| of["name"] == "shop").unwrap();
    let revenue: f64 = shop["revenue"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    assert!((revenue - 15.0).abs() < 1e-6, "{shop}");
    assert!(shop["p99_ms"].as_array().unwrap().iter().any(|p99| p99.as_f64() > Some(0.0)));
    // The answer contains only the rows since then.
    let next = numbers(&document).last().unwrap() + 1;
    let later = history(&gateway, &format!("?from={next}"));
    assert!(numbers(&later).iter().all(|number| *number >= next));
    assert_eq!(history(&gateway, "?range=24h")["step_s"], 60);
}

#[test]
fn a_window_has_the_sums_and_the_response_times_of_its_requests() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).set("class.shop", "{ match = ['GET /shop'] }").start();
    (0..3).for_each(|_| drop(gateway.get("/shop")));
    gateway.get("/else");
    let window = |name: &str| history(&gateway, &format!("?window={name}"));
    eventually("they are counted", || window("60s")["all"]["outcomes"]["served"] == 4);
    for name in ["60s", "15m", "24h"] {
        let sums = window(name);
        assert!(sums["length_s"].as_f64() > Some(0.0), "{sums}");
        let classes = sums["classes"].as_array().unwrap();
        assert_eq!(classes.len(), 2, "{sums}");
        let shop = classes.iter().find(|class| class["name"] == "shop").unwrap();
        assert_eq!(shop["outcomes"]["served"], 3, "{sums}");
        for of in [shop, &sums["all"]] {
            let [p50, p99] = ["p50_ms", "p99_ms"].map(|time| of[time].as_f64().unwrap());
            assert!(p50 > 0.0 && p50 <= p99, "{sums}");
        }
    }
}

#[test]
fn work_is_useful_if_it_was_answered_in_time_and_wasted_otherwise() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let work = |kind: &str| {
        gateway.metric(&format!("bywash_work_seconds_total{{class=\"other\",kind=\"{kind}\"}}"))
    };
    let leaves = gateway.asks("/leaves");
    let _abandoned = calls.next();
    drop(leaves);
    gateway.waits_for_outcome("orphaned", 1);
    // The only slot is free again when the next request reaches the server.
    let mut stays = gateway.asks("/stays");
    let second = calls.next();
    let wasted = work("wasted");
    assert!(wasted > 0.0 && work("useful") == 0.0, "{wasted}, {}", work("useful"));
    second.answer("");
    stays.answer().unwrap();
    gateway.waits_for_outcome("served", 1);
    eventually("the useful work is counted", || work("useful") > 0.0);
    assert!((work("wasted") - wasted).abs() < 1e-12, "{wasted}, {}", work("wasted"));
    let waits = gateway.asks("/runs");
    let runs = calls.next();
    let leaves = gateway.asks("/waits");
    gateway.waits_for("waiting", 1);
    drop(leaves);
    gateway.waits_for_outcome("orphaned", 2);
    runs.answer("");
    drop(waits);
    eventually("all are told", || {
        let document = history(&gateway, "");
        let (left, never_ran) =
            (sum(&document, "other", "outcomes/orphaned"), sum(&document, "other", "left_waiting"));
        (left, never_ran) == (2, 1) && sum(&document, "other", "outcomes/served") >= 1
    });
}

#[test]
fn who_follows_sees_every_second_also_after_a_pause() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut wire = follow(&gateway, None);
    let (_, name, rows) = event(&mut wire);
    assert_eq!((&*name, numbers(&rows)[0]), ("anew", 0));
    let mut seen = numbers(&rows);
    let (id, name, rows) = event(&mut wire);
    assert_eq!(name, "seconds");
    seen.extend(numbers(&rows));
    drop(wire);
    // Seconds pass without a follower.
    let last = *seen.last().unwrap();
    eventually("two more", || numbers(&history(&gateway, "")).last() >= Some(&(last + 2)));
    let (_, name, rows) = event(&mut follow(&gateway, Some(&id)));
    assert_eq!(name, "seconds");
    seen.extend(numbers(&rows));
    assert!(seen.iter().copied().eq(0..=*seen.last().unwrap()), "{seen:?}");
}

#[test]
fn who_has_followed_another_process_or_makes_no_sense_begins_anew() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    eventually("there is a second", || !numbers(&history(&gateway, "")).is_empty());
    for seen in ["00000000-7", "x", "-", "zz-1", &"9".repeat(300)] {
        let (_, name, rows) = event(&mut follow(&gateway, Some(seen)));
        assert_eq!((&*name, numbers(&rows)[0]), ("anew", 0), "{seen}");
    }
}

#[test]
fn who_was_away_for_longer_than_is_kept_begins_anew() {
    let upstream = Upstream::echo();
    let setup = Setup::before(&upstream);
    let gateway = setup.start();
    eventually("there is a second", || !numbers(&history(&gateway, "")).is_empty());
    // Number the saved seconds as if the gateway had run for 5,000 seconds longer.
    let mut learned: Value = serde_json::from_slice(&gateway.gateway().learned()).unwrap();
    for number in learned["history"]["seconds"]["number"].as_array_mut().unwrap() {
        *number = (number.as_u64().unwrap() + 5000).into();
    }
    drop(gateway);
    let learned = Some(learned.to_string().into_bytes());
    let next = setup.try_start_with(Inheritance { learned, ..Inheritance::default() });
    let Ok(next) = next else { panic!("it starts") };
    let (id, ..) = event(&mut follow(&next, None));
    let (epoch, _) = id.split_once('-').unwrap();
    let (_, name, rows) = event(&mut follow(&next, Some(&format!("{epoch}-4000"))));
    assert_eq!((&*name, numbers(&rows)[0]), ("anew", 5000));
    let (_, name, rows) = event(&mut follow(&next, Some(&format!("{epoch}-4999"))));
    assert_eq!((&*name, numbers(&rows)[0]), ("seconds", 5000));
}

#[test]
fn what_happened_before_a_restart_is_still_told_and_numbers_go_on() {
    let upstream = Upstream::echo();
    let setup = Setup::before(&upstream);
    let gateway = setup.start();
    gateway.get("/");
    eventually("it is counted", || sum(&history(&gateway, ""), "other", "outcomes/served") == 1);
    let before = history(&gateway, "");
    let learned = Some(gateway.gateway().learned());
    drop(gateway);
    let next = setup.try_start_with(Inheritance { learned, ..Inheritance::default() });
    let Ok(next) = next else { panic!("it starts") };
    assert_eq!(sum(&history(&next, ""), "other", "outcomes/served"), 1);
    let known = numbers(&before).len();
    eventually("it goes on", || numbers(&history(&next, "")).len() > known);
    let after = numbers(&history(&next, ""));
    assert!(after.iter().copied().eq(0..after.len() as u64), "{after:?}");
}

#[test]
fn a_range_a_window_or_a_number_that_is_none_is_refused() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    for wrong in ["?range=3h", "?range=", "?from=x", "?from=-1"] {
        let answer = admin(gateway.admin(), &format!("/v1/history{wrong}"));
        assert_eq!(answer.status(), Some(400), "{wrong}");
    }
    for (wrong, why) in [
        ("?window=3h", "10s, 60s, 15m or 24h"),
        ("?window=", "10s, 60s, 15m or 24h"),
        ("?window=60s&range=15m", "leave out `range` and `from`"),
        ("?window=60s&from=0", "leave out `range` and `from`"),
    ] {
        let answer = admin(gateway.admin(), &format!("/v1/history{wrong}"));
        assert_eq!(answer.status(), Some(400), "{wrong}");
        assert!(answer.text().contains(why), "{wrong}: {}", answer.text());
    }
}
