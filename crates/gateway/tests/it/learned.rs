//! What a gateway has learned, given to the one after it.

use bywash_gateway::Inheritance;
use serde_json::{Value, json};

use crate::setup::{Running, Setup, admin};
use crate::upstream::{Calls, Upstream};
use crate::wire::Wire;

/// One slot, one place; `/pay` is a transaction for those who have seen a product.
fn shop(upstream: &Upstream) -> Setup {
    Setup::before(upstream)
        .limit(1)
        .set("order.capacity", "1")
        .set("class.product", "{ match = ['GET /p/*'] }")
        .set("class.pay", "{ match = ['POST /pay'], tier = 'transact', after = ['product'] }")
}

fn visit(gateway: &Running, request: &str) -> Wire {
    gateway.sends(format!("{request} HTTP/1.1\r\nHost: a\r\nCookie: sid=walked\r\n\r\n"))
}

/// What a gateway knows before which a session has seen a product.
fn learned(upstream: &Upstream, calls: &Calls) -> Vec<u8> {
    let gateway = shop(upstream).start();
    let mut visitor = visit(&gateway, "GET /p/1");
    calls.next().answer("");
    visitor.answer().unwrap();
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 1);
    gateway.gateway().learned()
}

fn start(setup: &Setup, learned: Vec<u8>) -> Running {
    let from = Inheritance { learned: Some(learned), ..Inheritance::default() };
    setup.try_start_with(from).expect("whatever it was given, it starts")
}

/// Whether somebody who waits, of a session that is known, is refused when this session pays.
fn pushes_out(gateway: &Running, calls: &Calls) -> bool {
    let other = "GET / HTTP/1.1\r\nHost: a\r\nCookie: sid=other\r\n\r\n";
    let mut waiter = gateway.sends(other);
    calls.next().answer("");
    waiter.answer().unwrap();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    waiter.send(other);
    gateway.waits_for("waiting", 1);
    let mut payer = visit(gateway, "POST /pay");
    // One of the two is refused.
    gateway.waits_for_outcome("shed", 1);
    if waiter.has_nothing_to_read() {
        assert_eq!(payer.answer().unwrap().status(), Some(503));
        return false;
    }
    assert_eq!(waiter.answer().unwrap().status(), Some(503));
    true
}

#[test]
fn a_session_keeps_what_it_has_proven() {
    let (upstream, calls) = Upstream::by_hand();
    let learned = learned(&upstream, &calls);
    let gateway = start(&shop(&upstream), learned);
    assert_eq!(gateway.count("sessions"), 1);
    assert!(pushes_out(&gateway, &calls));
}

#[test]
fn without_it_nobody_is_remembered() {
    let (upstream, calls) = Upstream::by_hand();
    drop(learned(&upstream, &calls));
    let gateway = shop(&upstream).start();
    assert_eq!(gateway.count("sessions"), 0);
    assert!(!pushes_out(&gateway, &calls));
}

#[test]
fn classes_are_known_by_their_names_and_not_by_their_places() {
    let (upstream, calls) = Upstream::by_hand();
    let learned = learned(&upstream, &calls);
    let moved = shop(&upstream).set("class.aaa", "{ match = ['GET /a'] }");
    assert!(pushes_out(&start(&moved, learned), &calls));
}

#[test]
fn a_class_that_is_gone_has_proven_nothing() {
    let (upstream, calls) = Upstream::by_hand();
    let learned = learned(&upstream, &calls);
    let renamed = shop(&upstream)
        .unset("class.product")
        .set("class.item", "{ match = ['GET /p/*'] }")
        .set("class.pay", "{ match = ['POST /pay'], tier = 'transact', after = ['item'] }");
    assert!(!pushes_out(&start(&renamed, learned), &calls));
}

#[test]
fn what_was_learned_says_no_cookie() {
    let (upstream, calls) = Upstream::by_hand();
    let learned = String::from_utf8(learned(&upstream, &calls)).unwrap();
    assert!(!learned.contains("walked"), "{learned}");
}

#[test]
fn what_is_no_such_thing_is_not_believed() {
    let (upstream, calls) = Upstream::by_hand();
    let whole = learned(&upstream, &calls);
    let text = String::from_utf8(whole.clone()).unwrap();
    let damaged = [
        Vec::new(),
        b"null".to_vec(),
        whole[..whole.len() / 2].to_vec(),
        text.replace("\"format\":1", "\"format\":99").into_bytes(),
        vec![0xff; 1000],
        b"[".repeat(100_000),
    ];
    for bytes in damaged {
        let gateway = start(&shop(&upstream), bytes);
        assert_eq!(gateway.count("sessions"), 0);
    }
}

#[test]
fn what_it_has_learned_goes_on_from_one_to_the_next() {
    let (upstream, calls) = Upstream::by_hand();
    let mut learned = learned(&upstream, &calls);
    for _ in 0..3 {
        learned = start(&shop(&upstream), learned).gateway().learned();
    }
    assert!(pushes_out(&start(&shop(&upstream), learned), &calls));
}

/// What `/v1/sessions` tells.
fn told(gateway: &Running) -> Value {
    serde_json::from_slice(&admin(gateway.admin(), "/v1/sessions").body).unwrap()
}

#[test]
fn what_sessions_did_and_showed_is_kept_while_the_signals_are_the_same() {
    let (upstream, calls) = Upstream::by_hand();
    let signals = |list: &str| {
        let shop = shop(&upstream).set("identify.signals", list);
        shop.set("class.buy", "{ match = ['GET /buy'], tier = 'transact', earns = 1 }")
    };
    let shop = signals("['cookie:cart', 'cookie:mail=1']");
    let gateway = shop.start();
    for (cookie, target) in
        [("sid=one; cart=7; mail=2", "/p/1"), ("sid=one", "/buy"), ("sid=two", "/p/2")]
    {
        let mut visitor =
            gateway.sends(format!("GET {target} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
        calls.next().answer("");
        visitor.answer().unwrap();
        gateway.is_idle_again();
    }
    let before = told(&gateway);
    let combination = |at: usize| {
        let of = &before["signals"][at];
        (of["shown"].clone(), of["sessions"].as_f64(), of["ordered"].as_f64())
    };
    assert_eq!(combination(0), (json!([]), Some(1.0), Some(0.0)));
    assert_eq!(combination(1), (json!(["cookie:cart"]), Some(1.0), Some(1.0)));
    assert_eq!(before["orders"].as_f64(), Some(1.0));
    let class = |name: &str| {
        let classes = before["classes"].as_array().unwrap();
        classes.iter().find(|class| class["name"] == name).unwrap().clone()
    };
    assert_eq!(class("product")["first_visits"].as_f64(), Some(2.0));
    assert_eq!(class("product")["next"]["buy"].as_f64(), Some(0.5));
    let learned = gateway.gateway().learned();

    let after = told(&start(&shop, learned.clone()));
    for what in ["orders", "signals"] {
        assert_eq!(after[what], before[what]);
    }
    for (after, before) in
        after["classes"].as_array().unwrap().iter().zip(before["classes"].as_array().unwrap())
    {
        assert_eq!((&after["next"], &after["worth"]), (&before["next"], &before["worth"]));
    }

    let others = told(&start(&signals("['cookie:basket']"), learned));
    assert_eq!((&others["orders"], &others["signals"]), (&before["orders"], &json!([])));
}
