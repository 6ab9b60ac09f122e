//! Tests of how the gateway observes the application's session cookie: it warns if the configured
//! name seems wrong, and picks the name if it is `auto`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bywash_gateway::Inheritance;
use serde_json::Value;

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::{Upstream, with_fields};
use crate::wire::Message;

/// Returns a value that looks like that of a session cookie.
fn value(number: usize) -> String {
    format!("{number:032x}")
}

/// Starts an application that responds with the fields that `fields` returns for the number of the
/// request, from 0.
fn application(fields: impl Fn(usize, &Message) -> String + Send + Sync + 'static) -> Upstream {
    let number = AtomicUsize::new(0);
    Upstream::app(move |request| {
        with_fields(&fields(number.fetch_add(1, Ordering::SeqCst), request), "")
    })
}

/// Starts a gateway that trusts forwarded addresses.
fn before(upstream: &Upstream, session: &str) -> Running {
    Setup::before(upstream)
        .set("listen.trusted_proxies", "['127.0.0.1']")
        .set("identify.session", &format!("'{session}'"))
        .start()
}

fn cookie(gateway: &Running) -> Value {
    gateway.status()["session_cookie"].clone()
}

fn warning(gateway: &Running) -> String {
    cookie(gateway)["warning"].as_str().unwrap_or_default().to_owned()
}

/// Sends one visitor's requests over one connection, with the cookies that the responses have set.
fn visit(gateway: &Running, address: usize, requests: usize) {
    let mut client = gateway.client();
    let mut jar: Vec<(String, String)> = Vec::new();
    for _ in 0..requests {
        let cookies: Vec<String> =
            jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let line = match &cookies[..] {
            [] => String::new(),
            some => format!("Cookie: {}\r\n", some.join("; ")),
        };
        client.send(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.{address}\r\n{line}\r\n"
        ));
        let answer = client.answer().unwrap();
        for line in answer.all("set-cookie") {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            jar.retain(|(other, _)| other != name);
            if !line.contains("Max-Age=0") {
                jar.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

/// Returns whether a request brings a cookie of this name.
fn brings(request: &Message, name: &str) -> bool {
    let cookies = request.all("cookie").join("; ");
    cookies.split("; ").any(|pair| pair.starts_with(&format!("{name}=")))
}

/// Returns the field that sets a session cookie, or no field if the request has the cookie already.
fn session(name: &str, number: usize, request: &Message) -> String {
    if brings(request, name) {
        return String::new();
    }
    format!("Set-Cookie: {name}={}; Path=/; HttpOnly\r\n", value(number))
}

#[test]
fn a_cookie_that_no_request_has_is_told_with_those_that_answers_set() {
    let upstream = application(|number, request| {
        let session = session("PHPSESSID", number, request);
        format!("{session}Set-Cookie: theme=dark\r\n")
    });
    let gateway = before(&upstream, "cookie:sid");
    visit(&gateway, 1, 99);
    gateway.is_idle_again();
    assert_eq!(cookie(&gateway)["warning"], Value::Null, "too early");
    visit(&gateway, 2, 1);
    gateway.is_idle_again();
    assert_eq!(
        warning(&gateway),
        "identify.session = \"cookie:sid\": no request had the cookie `sid`; responses set `theme`, \
         `PHPSESSID` (HttpOnly)"
    );
    let cookie = cookie(&gateway);
    assert_eq!([&cookie["answered"], &cookie["carried"]], [100, 0]);
    let set = cookie["set"].as_array().unwrap();
    let php = set.iter().find(|one| one["name"] == "PHPSESSID").unwrap();
    assert_eq!([&php["answers"], &php["requests"]], [2, 98]);
    assert_eq!(php["http_only"], true);
}

#[test]
fn a_stray_request_with_the_wrong_cookie_does_not_hide_that_it_is_wrong() {
    let upstream = application(|number, request| session("PHPSESSID", number, request));
    let gateway = before(&upstream, "cookie:sid");
    gateway.sends("GET / HTTP/1.1\r\nHost: a\r\nCookie: sid=old\r\n\r\n").answer().unwrap();
    visit(&gateway, 1, 100);
    gateway.is_idle_again();
    let text = warning(&gateway);
    assert!(text.contains("1 of the last 101 answered requests had the cookie `sid`"), "{text}");
}

#[test]
fn the_right_cookie_is_not_told() {
    // In the second case no visitor returns the cookie, but responses set it, so the name is right.
    for (returns, carried) in [(120, 119), (1, 0)] {
        let upstream = application(|number, request| session("sid", number, request));
        let gateway = before(&upstream, "cookie:sid");
        for number in 0..120 / returns {
            visit(&gateway, number, returns);
        }
        gateway.is_idle_again();
        let cookie = cookie(&gateway);
        assert_eq!(cookie["warning"], Value::Null);
        assert_eq!([&cookie["answered"], &cookie["carried"]], [120, carried]);
    }
}

/// Sends the requests of a client that ignores cookies.
fn ignores_cookies(gateway: &Running, requests: usize) {
    let mut client = gateway.client();
    for _ in 0..requests {
        client.send(get("/"));
        client.answer().unwrap();
    }
    gateway.is_idle_again();
}

#[test]
fn a_cookie_that_was_set_is_right_until_only_others_are_set_for_a_thousand_requests() {
    // Without the attribute HttpOnly, the other cookies cannot be session cookies.
    for (attribute, is_told) in [("; HttpOnly", true), ("", false)] {
        let upstream = application(move |number, request| match number {
            0 => session("sid", number, request),
            _ => format!("Set-Cookie: n{number}=1{attribute}\r\n"),
        });
        let gateway = before(&upstream, "cookie:sid");
        ignores_cookies(&gateway, 1000);
        assert_eq!(warning(&gateway), "");
        ignores_cookies(&gateway, 1001);
        let text = warning(&gateway);
        let words = "none of the last 1001 answered requests had the cookie `sid`";
        assert_eq!(text.contains(words), is_told, "{text}");
    }
}

#[test]
fn a_cookie_that_is_renamed_is_told_with_the_new_one() {
    let upstream = application(|number, request| {
        session(if number < 1000 { "sid" } else { "PHPSESSID" }, number, request)
    });
    let gateway = before(&upstream, "cookie:sid");
    visit(&gateway, 1, 1000);
    gateway.is_idle_again();
    assert_eq!(cookie(&gateway)["carried"], 999);
    assert_eq!(warning(&gateway), "");
    visit(&gateway, 2, 1000);
    visit(&gateway, 3, 1);
    gateway.is_idle_again();
    assert_eq!(
        warning(&gateway),
        "identify.session = \"cookie:sid\": none of the last 1001 answered requests had the cookie \
         `sid`; responses set `PHPSESSID` (HttpOnly)"
    );
}

#[test]
fn where_sessions_are_no_cookie_nothing_is_watched() {
    let upstream = application(|number, request| session("sid", number, request));
    assert_eq!(cookie(&before(&upstream, "none")), Value::Null);
}

#[test]
fn a_reload_of_another_cookie_counts_from_the_beginning() {
    let upstream = application(|number, request| session("PHPSESSID", number, request));
    let setup = Setup::before(&upstream);
    let gateway = setup.start();
    visit(&gateway, 1, 100);
    gateway.is_idle_again();
    gateway.reload(&setup).unwrap();
    assert!(!warning(&gateway).is_empty());
    let other = setup.set("identify.session", "'cookie:PHPSESSID'");
    gateway.reload(&other).unwrap();
    visit(&gateway, 1, 100);
    gateway.is_idle_again();
    let cookie = cookie(&gateway);
    assert_eq!((&cookie["warning"], &cookie["carried"]), (&Value::Null, &99.into()));
}

#[test]
fn names_without_end_leave_the_last_sixteen_that_are_no_longer_than_64_bytes() {
    let upstream = application(|number, _| {
        let long = "n".repeat(65);
        let names = (0..3).map(|part| format!("Set-Cookie: n{number}-{part}=1\r\n"));
        let names: String = names.collect();
        format!("{names}Set-Cookie: {long}=1\r\nSet-Cookie: a b=1\r\nSet-Cookie: b`=1\r\n")
    });
    let gateway = before(&upstream, "cookie:sid");
    visit(&gateway, 1, 100);
    gateway.is_idle_again();
    let cookie = cookie(&gateway);
    let set = cookie["set"].as_array().unwrap();
    assert_eq!((set.len(), &set[15]["name"]), (16, &"n99-2".into()));
    let text = warning(&gateway);
    assert!(text.ends_with(" and 11 more"), "{text}");
}

#[test]
fn a_name_that_only_clients_send_is_not_kept() {
    let upstream = application(|_, _| String::new());
    for session in ["auto", "cookie:sid"] {
        let gateway = before(&upstream, session);
        let mut client = gateway.client();
        for number in 0..100 {
            let value = value(number / 2);
            client.send(format!(
                "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.{number}\r\nCookie: PHPSESSID={value}\r\n\r\n"
            ));
            client.answer().unwrap();
        }
        gateway.is_idle_again();
        assert_eq!(cookie(&gateway)["set"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_cookie_that_answers_delete_is_none_that_they_set() {
    let upstream =
        application(|_, _| "Set-Cookie: PHPSESSID=deleted; HttpOnly; Max-Age=0\r\n".to_owned());
    for session in ["auto", "cookie:sid"] {
        let gateway = before(&upstream, session);
        visit(&gateway, 1, 101);
        gateway.is_idle_again();
        let cookie = cookie(&gateway);
        assert_eq!(cookie["set"], Value::Array(Vec::new()));
        assert_eq!(cookie["warning"], Value::Null);
    }
}

/// Returns the name of the picked cookie after `visitors` visitors have sent three requests each.
fn picked(gateway: &Running, visitors: usize) -> Value {
    for number in 0..visitors {
        visit(gateway, number % 250, 3);
    }
    gateway.is_idle_again();
    cookie(gateway)["name"].clone()
}

#[test]
fn auto_picks_the_cookie_that_is_returned_unchanged() {
    let upstream = application(|number, request| {
        let [session, form] =
            ["my_session", "csrf_sess"].map(|name| session(name, number, request));
        let short = if brings(request, "sid") {
            String::new()
        } else {
            format!("Set-Cookie: sid={number}\r\n")
        };
        // `sess_a` has another value in each response, and `sess_b` always has the same value.
        let (sliding, language) = (value(number), value(7));
        format!(
            "{session}{form}{short}Set-Cookie: sess_a={sliding}; HttpOnly\r\n\
             Set-Cookie: sess_b={language}; HttpOnly\r\n"
        )
    });
    let gateway = before(&upstream, "auto");
    assert_eq!(picked(&gateway, 9), Value::Null, "too early");
    gateway.sends(with(&value(1))).answer().unwrap();
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 0, "until then there are no sessions");
    assert_eq!(picked(&gateway, 15), "my_session");
    gateway.sends(with(&value(1))).answer().unwrap();
    gateway.is_idle_again();
    assert!(gateway.count("sessions") > 0);
    assert_eq!(cookie(&gateway)["source"], "auto");
}

fn with(session: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: my_session={session}\r\n\r\n")
}

#[test]
fn auto_does_not_pick_a_cookie_that_answers_change() {
    // Either each response sets the cookie, or only every third one: a page, followed by two images
    // whose requests return the cookie.
    for every in [1, 3] {
        let upstream = application(move |number, _| match number % every {
            0 => format!("Set-Cookie: session={}; HttpOnly\r\n", value(number)),
            _ => String::new(),
        });
        let gateway = before(&upstream, "auto");
        for number in 0..60 {
            visit(&gateway, number, 6);
        }
        gateway.is_idle_again();
        let cookie = cookie(&gateway);
        assert_eq!(cookie["name"], Value::Null, "{every}");
        assert!(cookie["set"][0]["requests"].as_u64() > Some(200), "{cookie}");
    }
}

#[test]
fn auto_prefers_what_is_called_a_session_however_often_another_cookie_is_set() {
    let upstream = application(|number, request| {
        let visitor = session("visitor", number, request);
        // Every third visitor also has a session.
        let shop =
            if number % 9 == 0 { session("PHPSESSID", number, request) } else { String::new() };
        visitor + &shop
    });
    let gateway = before(&upstream, "auto");
    assert_eq!(picked(&gateway, 30), Value::Null);
    assert_eq!(picked(&gateway, 40), "PHPSESSID");
    // Later cookies do not change the pick.
    assert_eq!(picked(&gateway, 60), "PHPSESSID");
}

#[test]
fn one_address_alone_gives_no_evidence() {
    let upstream = application(|number, request| session("PHPSESSID", number, request));
    let gateway = before(&upstream, "auto");
    for _ in 0..60 {
        visit(&gateway, 1, 3);
    }
    gateway.is_idle_again();
    assert_eq!(cookie(&gateway)["name"], Value::Null);
    assert_eq!(picked(&gateway, 20), "PHPSESSID");
}

#[test]
fn auto_picks_the_new_name_of_the_session_cookie() {
    let is_renamed = Arc::new(AtomicBool::new(false));
    let renamed = Arc::clone(&is_renamed);
    let upstream = application(move |number, request| {
        let name = if renamed.load(Ordering::SeqCst) { "shop_session" } else { "PHPSESSID" };
        session(name, number, request)
    });
    let gateway = before(&upstream, "auto");
    assert_eq!(picked(&gateway, 20), "PHPSESSID");
    is_renamed.store(true, Ordering::SeqCst);
    ignores_cookies(&gateway, 1000);
    assert_eq!(cookie(&gateway)["name"], "PHPSESSID", "no other one has been returned");
    let text = warning(&gateway);
    assert!(text.contains("the cookie `PHPSESSID`; responses set `shop_session`"), "{text}");
    assert_eq!(picked(&gateway, 30), "shop_session");
    let learned = String::from_utf8(gateway.gateway().learned()).unwrap();
    assert!(learned.contains("\"session_cookie\":\"shop_session\""), "{learned}");
}

#[test]
fn auto_keeps_its_pick_while_only_a_cookie_of_all_visitors_is_set() {
    let is_night = Arc::new(AtomicBool::new(false));
    let night = Arc::clone(&is_night);
    let upstream = application(move |number, request| {
        let visitor = session("visitor", number, request);
        let is_night = night.load(Ordering::SeqCst);
        let shop = if is_night { String::new() } else { session("PHPSESSID", number, request) };
        visitor + &shop
    });
    let gateway = before(&upstream, "auto");
    assert_eq!(picked(&gateway, 20), "PHPSESSID");
    is_night.store(true, Ordering::SeqCst);
    ignores_cookies(&gateway, 1000);
    assert_eq!(picked(&gateway, 30), "PHPSESSID");
}

/// Returns a gateway that has picked `PHPSESSID`.
fn that_has_picked() -> (Upstream, Setup, Running) {
    let upstream = application(|number, request| session("PHPSESSID", number, request));
    let setup = Setup::before(&upstream)
        .set("listen.trusted_proxies", "['127.0.0.1']")
        .set("identify.session", "'auto'");
    let gateway = setup.start();
    assert_eq!(picked(&gateway, 20), "PHPSESSID");
    (upstream, setup, gateway)
}

#[test]
fn what_auto_has_picked_stays_over_a_reload_of_the_same() {
    let (_upstream, setup, gateway) = that_has_picked();
    gateway.reload(&setup).unwrap();
    assert_eq!(cookie(&gateway)["name"], "PHPSESSID");
    gateway.reload(&setup.set("identify.session", "'none'")).unwrap();
    assert_eq!(cookie(&gateway), Value::Null);
}

#[test]
fn what_auto_has_picked_is_handed_over() {
    let (upstream, setup, gateway) = that_has_picked();
    let learned = gateway.gateway().learned();
    let next = |setup: &Setup, learned: &[u8]| {
        let from = Inheritance { learned: Some(learned.to_vec()), ..Inheritance::default() };
        cookie(&setup.try_start_with(from).unwrap())["name"].clone()
    };
    assert_eq!(next(&setup, &learned), "PHPSESSID");
    assert_eq!(next(&setup.set("identify.session", "'cookie:id'"), &learned), "id");
    let setup = Setup::before(&upstream).set("identify.session", "'auto'");
    for name in ["a b", &"a".repeat(65)] {
        let text = String::from_utf8(learned.clone()).unwrap();
        let text = text.replace("\"PHPSESSID\"", &format!("\"{name}\""));
        assert_eq!(next(&setup, text.as_bytes()), Value::Null, "{name}");
    }
}

#[test]
fn auto_says_that_it_has_picked_none() {
    let upstream = application(|_, _| "Set-Cookie: theme=dark\r\n".to_owned());
    let gateway = before(&upstream, "auto");
    let mut client = gateway.client();
    for _ in 0..1000 {
        client.send(get("/"));
        client.answer().unwrap();
    }
    eventually("it is told", || !warning(&gateway).is_empty());
    assert_eq!(
        warning(&gateway),
        "identify.session = \"auto\" has picked no cookie in the last 1000 answered requests; responses set `theme`"
    );
}
