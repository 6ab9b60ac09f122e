//! Tests of service levels: which sources are believed, and what the application receives.

use bywash_token::{LevelRefusal, read_level};
use bywash_units::TimeSpan;

use crate::http2::{Http2, request};
use crate::setup::{Running, Setup, admin, eventually};
use crate::tokens::{KeyFile, seconds_ago};
use crate::upstream::{Calls, Upstream, ok};
use crate::wire::{Message, Wire};

/// The time for which the application of these tests accepts a level.
const LIFETIME: TimeSpan = TimeSpan::from_secs(60);

/// Configures three levels: `/pay` gets `high`, `/p/*` gets `mid`, everything else gets `low`.
fn shop(upstream: &Upstream, keys: &KeyFile) -> Setup {
    Setup::before(upstream)
        .set("levels.names", "['high', 'mid', 'low']")
        .set("levels.key_file", &keys.path())
        .set("class.pay", "{ match = ['* /pay'], level = 'high' }")
        .set("class.product", "{ match = ['* /p/**'], level = 'mid' }")
}

/// Configures the same levels behind a trusted hop that names the customer's level.
fn behind_a_hop(upstream: &Upstream, keys: &KeyFile) -> Setup {
    shop(upstream, keys)
        .set("levels.customer_header", "'X-Customer-Level'")
        .set("listen.trusted_proxies", "['127.0.0.0/8']")
}

fn with_fields(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

/// Returns the request that the application receives when a client sends these fields.
fn forwarded(client: &mut Wire, calls: &Calls, target: &str, fields: &str) -> Message {
    client.send(with_fields(target, fields));
    let mut call = calls.next();
    call.send(ok(""));
    assert_eq!(client.answer().unwrap().status(), Some(200));
    call.request
}

/// Returns the level that the application reads. Returns `None` unless there is exactly one field,
/// whose signature is valid.
fn level(request: &Message, keys: &KeyFile) -> Option<String> {
    let all = request.all("bywash-level");
    let [one] = all[..] else { return None };
    let read = read_level(&keys.level_keys(), one.as_bytes(), seconds_ago(0), LIFETIME);
    Some(read.expect("it is signed").to_owned())
}

/// Returns the names of a request's fields that contain `level`, except `Bywash-Level`.
fn other_levels(request: &Message) -> Vec<&str> {
    let names = request.fields.iter().map(|(name, _)| name.as_str());
    names.filter(|name| name.to_lowercase().contains("level") && *name != "Bywash-Level").collect()
}

fn customers(gateway: &Running) -> [f64; 3] {
    ["known", "unknown", "untrusted"]
        .map(|what| gateway.metric(&format!("bywash_customer_levels_total{{what=\"{what}\"}}")))
}

#[test]
fn a_request_has_the_level_of_its_class_or_the_default() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-class");
    let of = |setup: Setup| {
        let gateway = setup.start();
        let mut client = gateway.client();
        ["/pay", "/p/1", "/"].map(|target| {
            level(&forwarded(&mut client, &calls, target, ""), &keys).expect("one field")
        })
    };
    assert_eq!(of(shop(&upstream, &keys)), ["high", "mid", "low"]);
    let default = shop(&upstream, &keys).set("levels.default", "'high'");
    assert_eq!(of(default), ["high", "mid", "high"]);
}

#[test]
fn what_a_client_says_is_removed_and_replaced() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-spoofed");
    let gateway = shop(&upstream, &keys).start();
    let trusted = shop(&upstream, &keys).set("listen.trusted_proxies", "['127.0.0.0/8']").start();
    let good = forwarded(&mut gateway.client(), &calls, "/pay", "");
    let good = good.field("bywash-level").unwrap();
    for fields in [
        "Bywash-Level: high\r\n",
        "bywash-level: high\r\nBYWASH-LEVEL: high\r\n",
        "Bywash_Level: high\r\nbywash.level: high\r\n",
        &format!("Bywash-Level: {good}\r\n"),
    ] {
        for gateway in [&gateway, &trusted] {
            let request = forwarded(&mut gateway.client(), &calls, "/", fields);
            assert_eq!(level(&request, &keys).as_deref(), Some("low"), "{fields}");
            assert_eq!(other_levels(&request), [""; 0], "{fields}");
        }
    }
}

#[test]
fn it_cannot_be_named_as_the_connections_own() {
    let (upstream, _calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-connection");
    let gateway = shop(&upstream, &keys).start();
    let mut client = gateway.sends(with_fields("/", "Connection: Bywash-Level\r\n"));
    assert_eq!(client.answer().unwrap().status(), Some(400));
}

#[test]
fn without_levels_nothing_is_sent_and_what_a_client_says_is_removed() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let fields = "Bywash-Level: high\r\nBywash_Level: high\r\nX-Customer-Level: high\r\n";
    let request = forwarded(&mut gateway.client(), &calls, "/", fields);
    assert_eq!(request.all("bywash-level"), [""; 0]);
    // This field is not configured as a level, so it is forwarded unchanged.
    assert_eq!(other_levels(&request), ["X-Customer-Level"]);
    assert!(!gateway.metrics().contains("level=\""));
}

#[test]
fn a_trusted_hop_raises_the_level_of_its_customer_and_never_lowers_it() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-customer");
    let gateway = behind_a_hop(&upstream, &keys).start();
    let mut client = gateway.client();
    for (target, customer, expected) in [
        ("/", "high", "high"),
        ("/", "mid", "mid"),
        ("/p/1", "high", "high"),
        ("/p/1", "low", "mid"),
        ("/pay", "low", "high"),
    ] {
        let fields = format!("x-customer-LEVEL: {customer}\r\nX_Customer.Level: high\r\n");
        let request = forwarded(&mut client, &calls, target, &fields);
        assert_eq!(level(&request, &keys).as_deref(), Some(expected), "{target} {customer}");
        assert_eq!(other_levels(&request), [""; 0]);
    }
    assert_eq!(customers(&gateway), [5.0, 0.0, 0.0]);
    let best = behind_a_hop(&upstream, &keys).set("levels.default", "'high'").start();
    let request = forwarded(&mut best.client(), &calls, "/", "X-Customer-Level: low\r\n");
    assert_eq!(level(&request, &keys).as_deref(), Some("low"), "a default is for those without");
}

#[test]
fn a_strangers_word_about_its_customer_is_removed_and_counted() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-stranger");
    let setup = behind_a_hop(&upstream, &keys).set("listen.trusted_proxies", "['192.0.2.1']");
    let gateway = setup.start();
    let fields = "X-Customer-Level: high\r\nX-Forwarded-For: 192.0.2.1\r\n";
    let request = forwarded(&mut gateway.client(), &calls, "/p/1", fields);
    assert_eq!(level(&request, &keys).as_deref(), Some("mid"));
    assert_eq!(other_levels(&request), [""; 0]);
    let alias = forwarded(&mut gateway.client(), &calls, "/", "x_customer_level: high\r\n");
    assert_eq!((level(&alias, &keys).as_deref(), other_levels(&alias).len()), (Some("low"), 0));
    assert_eq!(customers(&gateway), [0.0, 0.0, 1.0]);
}

#[test]
fn a_word_that_is_no_level_leaves_that_of_the_class() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-unknown");
    let gateway = behind_a_hop(&upstream, &keys).start();
    let mut client = gateway.client();
    let wrong = [
        "X-Customer-Level: platinum\r\n",
        "X-Customer-Level: HIGH\r\n",
        "X-Customer-Level: high, high\r\n",
        "X-Customer-Level: high;1\r\n",
        "X-Customer-Level: high\r\nX-Customer-Level: high\r\n",
        "X-Customer-Level: high\r\nX-Customer-Level:\r\n",
        &format!("X-Customer-Level: {}\r\n", "x".repeat(4000)),
    ];
    for fields in wrong {
        let request = forwarded(&mut client, &calls, "/p/1", fields);
        assert_eq!(level(&request, &keys).as_deref(), Some("mid"), "{fields}");
        assert_eq!(other_levels(&request), [""; 0], "{fields}");
    }
    assert_eq!(customers(&gateway), [0.0, wrong.len() as f64, 0.0]);
    // An empty field is not counted as wrong.
    forwarded(&mut client, &calls, "/p/1", "X-Customer-Level:\r\n");
    assert_eq!(customers(&gateway), [0.0, wrong.len() as f64, 0.0]);
    assert!(!gateway.metrics().contains("platinum"));
}

#[test]
fn who_is_observed_or_bypassed_is_counted_by_level_and_the_application_told_nothing_new() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-observed");
    let sent_upstream = |gateway: &Running| {
        let fields = "Bywash-Level: high\r\nX-Customer-Level: low\r\n";
        let request = forwarded(&mut gateway.client(), &calls, "/pay", fields);
        (level(&request, &keys), request.field("x-customer-level").map(str::to_owned))
    };
    let as_it_came = (None, Some("low".to_owned()));
    let observed = || behind_a_hop(&upstream, &keys).set("mode", "'observe'");
    let gateway = observed().start();
    assert_eq!(sent_upstream(&gateway), as_it_came);
    served(&gateway, "high", 1.0);
    let stranger = observed().set("listen.trusted_proxies", "['192.0.2.1']").start();
    assert_eq!(sent_upstream(&stranger), (None, None));
    let gateway = behind_a_hop(&upstream, &keys).start();
    gateway.gateway().bypass(true);
    assert_eq!(sent_upstream(&gateway), as_it_came);
    served(&gateway, "high", 1.0);
    gateway.gateway().bypass(false);
    assert_eq!(sent_upstream(&gateway), (Some("high".to_owned()), None));
}

#[test]
fn it_is_signed_when_it_is_sent_and_not_when_it_came() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-moment");
    let gateway = shop(&upstream, &keys).limit(1).start();
    let _running = gateway.asks("/");
    let first = calls.next();
    let _waiting = gateway.asks("/pay");
    gateway.waits_for("waiting", 1);
    let came = seconds_ago(0);
    eventually("the clock goes on", || seconds_ago(2) > came);
    first.answer("");
    let request = calls.next().request;
    let text = request.field("bywash-level").unwrap();
    let read = |lifetime| read_level(&keys.level_keys(), text.as_bytes(), seconds_ago(0), lifetime);
    assert_eq!(read(LIFETIME), Ok("high"));
    let signed: u64 = text.split(';').nth(1).unwrap().parse().unwrap();
    assert!(bywash_token::UnixTime::from_millis(signed * 1000) > came, "{text}");
    let gone = read_level(&keys.level_keys(), text.as_bytes(), seconds_ago(120), LIFETIME);
    assert_eq!(gone, Err(LevelRefusal::FromTheFuture));
}

#[test]
fn a_client_of_http_2_is_no_exception() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-http2");
    let gateway = behind_a_hop(&upstream, &keys).start();
    let mut client = Http2::connect(gateway.gateway().http());
    let fields = [("bywash-level", "high"), ("bywash_level", "high"), ("x-customer-level", "mid")];
    let asked = client.sends(request("GET", "http://a/", &fields), true);
    let mut call = calls.next();
    assert_eq!(level(&call.request, &keys).as_deref(), Some("mid"));
    assert_eq!(other_levels(&call.request), [""; 0]);
    call.send(ok(""));
    assert_eq!(asked.answer().unwrap().status, 200);
}

#[test]
fn neither_are_upgrades_and_trailers() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-upgrade");
    let gateway = behind_a_hop(&upstream, &keys).start();
    let _client = gateway.sends(with_fields(
        "/p/1",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nBywash-Level: high\r\n",
    ));
    let request = calls.next().request;
    assert_eq!(request.field("upgrade"), Some("websocket"));
    assert_eq!(level(&request, &keys).as_deref(), Some("mid"));
    let _client = gateway.sends(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nBywash-Level: high\r\n\
         X-Customer-Level: high\r\nX_Customer_Level: high\r\nX-End: 1\r\n\r\n",
    );
    let request = calls.next().request;
    assert_eq!(level(&request, &keys).as_deref(), Some("low"));
    assert_eq!(request.trailers, [("X-End".to_owned(), "1".to_owned())]);
}

#[test]
fn a_reload_changes_levels_and_keys_for_those_who_come_after() {
    let (upstream, calls) = Upstream::by_hand();
    let mut keys = KeyFile::new("levels-reload");
    let setup = shop(&upstream, &keys);
    let gateway = setup.start();
    let mut client = gateway.client();
    let mut sent_upstream = || forwarded(&mut client, &calls, "/pay", "");
    assert_eq!(level(&sent_upstream(), &keys).as_deref(), Some("high"));
    let fewer = setup
        .set("levels.names", "['best', 'rest']")
        .set("class.pay", "{ match = ['* /pay'], level = 'best' }")
        .unset("class.product");
    gateway.reload(&fewer).unwrap();
    assert_eq!(level(&sent_upstream(), &keys).as_deref(), Some("best"));
    let before = keys.level_keys();
    keys.rotate(2);
    gateway.reload(&fewer).unwrap();
    let request = sent_upstream();
    assert_eq!(level(&request, &keys).as_deref(), Some("best"));
    let text = request.field("bywash-level").unwrap().as_bytes();
    let read = read_level(&before, text, seconds_ago(0), LIFETIME);
    assert_eq!(read, Err(LevelRefusal::Forged), "the new key signs");
    let gone = fewer
        .set("class.pay", "{ match = ['* /pay'] }")
        .unset("levels.names")
        .unset("levels.key_file");
    gateway.reload(&gone).unwrap();
    assert_eq!(sent_upstream().all("bywash-level"), [""; 0]);
}

/// Waits until `count` requests of this level were served.
fn served(gateway: &Running, level: &str, count: f64) {
    let labels = format!("{{level=\"{level}\",outcome=\"served\"}}");
    eventually(&format!("{count} of {level}"), || {
        gateway.metric(&format!("bywash_level_requests_total{labels}")) == count
    });
}

#[test]
fn requests_are_counted_by_level_while_they_wait_run_and_end() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-counted");
    let gateway = shop(&upstream, &keys).limit(1).start();
    let gauges = || {
        ["high", "mid", "low"].map(|level| {
            ["waiting", "running"]
                .map(|what| gateway.metric(&format!("bywash_level_{what}{{level=\"{level}\"}}")))
        })
    };
    let mut high = gateway.asks("/pay");
    let call = calls.next();
    let mut mid = gateway.asks("/p/1");
    let low = gateway.asks("/");
    gateway.waits_for("waiting", 2);
    assert_eq!(gauges(), [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]);
    drop(low);
    eventually("it has left", || gauges()[2] == [0.0, 0.0]);
    call.answer("");
    high.answer().unwrap();
    calls.next().answer("");
    mid.answer().unwrap();
    served(&gateway, "mid", 1.0);
    served(&gateway, "high", 1.0);
    assert_eq!(gauges(), [[0.0, 0.0]; 3]);
    let orphaned = "bywash_level_requests_total{level=\"low\",outcome=\"orphaned\"}";
    assert_eq!(gateway.metric(orphaned), 1.0);
    let answered = |level: &str| {
        gateway.metric(&format!("bywash_level_response_seconds_count{{level=\"{level}\"}}"))
    };
    assert_eq!(["high", "mid", "low"].map(answered), [1.0, 1.0, 0.0]);
}

#[test]
fn operators_see_the_level_of_a_request() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("levels-shown");
    let gateway = shop(&upstream, &keys).start();
    let request = forwarded(&mut gateway.client(), &calls, "/pay", "");
    let name = request.field("bywash-request").unwrap();
    let path = format!("/v1/requests/{name}");
    eventually("it has ended", || admin(gateway.admin(), &path).status() == Some(200));
    let entry: serde_json::Value =
        serde_json::from_slice(&admin(gateway.admin(), &path).body).unwrap();
    assert_eq!((&entry["class"], &entry["level"]), (&"pay".into(), &"high".into()));
}
