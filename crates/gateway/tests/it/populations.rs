//! Tests of populations: clients whose requests look alike, and what their sessions do.

use bywash_gateway::Inheritance;
use serde_json::{Value, json};

use crate::operator::says;
use crate::setup::{Running, Setup, admin};
use crate::upstream::{Upstream, with_fields};

const FIREFOX: &str = "User-Agent: Mozilla/5.0 Firefox/140.0\r\nAccept: text/html\r\n";
const LIBRARY: &str = "user-agent: Mozilla/5.0 Chrome/120.0\r\naccept: */*\r\n";

/// Sends a request from this address, and waits for the answer.
fn visit(gateway: &Running, address: u8, target: &str, fields: &str) {
    let from = format!("X-Forwarded-For: 192.0.2.{address}\r\n");
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{from}{fields}\r\n");
    gateway.sends(request).answer().unwrap();
    gateway.is_idle_again();
}

fn site(upstream: &Upstream) -> Setup {
    Setup::before(upstream).limit(4).set("listen.trusted_proxies", "['127.0.0.0/8']")
}

fn document(gateway: &Running) -> Value {
    json_of(gateway, "/v1/populations")
}

fn json_of(gateway: &Running, path: &str) -> Value {
    crate::operator::document(&admin(gateway.admin(), path))
}

/// Returns the sessions of a population, those that read on, and its first requests.
fn numbers(population: &Value) -> [i64; 3] {
    let number = |name: &str| population[name].as_f64().unwrap().round() as i64;
    [number("sessions"), number("read_on"), number("requests")]
}

#[test]
fn a_client_without_cookies_is_known_by_its_address_and_browser() {
    let upstream = Upstream::app(|_| with_fields("", "page"));
    let gateway = site(&upstream).set("identify.session", "'none'").start();
    for address in 1..=3 {
        visit(&gateway, address, "/one", FIREFOX);
        visit(&gateway, address, "/two", &FIREFOX.replace("140", "141"));
        visit(&gateway, address, "/two", FIREFOX);
        visit(&gateway, address, "/three", FIREFOX);
        visit(&gateway, address, "/tail", LIBRARY);
    }
    let found = document(&gateway);
    assert_eq!((&found["ranks"], &found["count"]), (&true.into(), &2.into()), "{found}");
    let [readers, scrapers] = [&found["populations"][0], &found["populations"][1]];
    assert_eq!(numbers(readers), [3, 3, 12], "another version is no other client");
    assert_eq!(numbers(scrapers), [3, 0, 3]);
    assert_eq!(readers["user_agent"], "Mozilla/0.0 Firefox/0.0");
    assert_eq!(readers["fields"], "Host, User-Agent, Accept");
    assert_eq!(scrapers["fields"], "Host, user-agent, accept");
    assert_eq!((&readers["protocol"], &readers["language"]), (&"HTTP/1.1".into(), &Value::Null));
    let requests = json_of(&gateway, "/v1/requests");
    let last = &requests["requests"][0];
    assert_eq!((&last["population"], &last["population_level"]), (&scrapers["name"], &0.into()));

    // The next process knows them.
    let from = Inheritance { learned: Some(gateway.gateway().learned()), ..Inheritance::default() };
    let next = site(&upstream).try_start_with(from).unwrap();
    visit(&next, 9, "/one", FIREFOX);
    let found = document(&next);
    assert_eq!(numbers(&found["populations"][0]), [4, 3, 1]);
    assert_eq!(found["populations"][0]["name"], readers["name"]);
}

#[test]
fn a_visit_does_not_read_on_by_the_parts_of_its_page() {
    let upstream = Upstream::app(|request| match request.target() {
        "/icon" => b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => with_fields("", "page"),
    });
    let gateway = site(&upstream).set("identify.session", "'none'").start();
    let part = format!("{FIREFOX}Sec-Fetch-Dest: image\r\n");
    visit(&gateway, 1, "/image", &part);
    assert_eq!(numbers(&document(&gateway)["populations"][0])[0], 0, "a part begins no visit");
    visit(&gateway, 2, "/one", FIREFOX);
    for target in ["/style", "/icon"] {
        visit(&gateway, 2, target, &part);
    }
    let seen = || {
        let found = document(&gateway);
        let all = found["populations"].as_array().unwrap().clone();
        let pages = all.iter().find(|one| one["fields"] == "Host, User-Agent, Accept").unwrap();
        numbers(pages)
    };
    assert_eq!(seen(), [1, 0, 3]);
    visit(&gateway, 2, "/two", FIREFOX);
    assert_eq!(seen(), [1, 1, 4], "the redirected part has not ended the visit");
}

#[test]
fn the_files_of_a_page_are_of_the_visit_that_asks_for_them() {
    let upstream = Upstream::app(|_| with_fields("", "page"));
    let gateway = site(&upstream).set("identify.session", "'none'").start();
    visit(&gateway, 1, "/one", FIREFOX);
    visit(&gateway, 1, "/load.php", &FIREFOX.replace("text/html", "text/css"));
    let found = document(&gateway);
    assert_eq!(found["count"], 1, "{found}");
    assert_eq!(numbers(&found["populations"][0]), [1, 1, 2]);
}

#[test]
fn a_client_that_follows_a_redirection_has_not_read_on() {
    let moved = "HTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n";
    let upstream = Upstream::app(move |request| match request.target() {
        "/old" => moved.into(),
        _ => with_fields("", "page"),
    });
    let gateway = site(&upstream).set("identify.session", "'none'").start();
    visit(&gateway, 1, "/old", FIREFOX);
    visit(&gateway, 1, "/new", FIREFOX);
    assert_eq!(numbers(&document(&gateway)["populations"][0]), [1, 0, 2]);
}

#[test]
fn a_client_that_leaves_before_the_end_of_its_page_counts_too() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = site(&upstream).set("identify.session", "'none'").start();
    let mut client = gateway.sends(format!("GET / HTTP/1.1\r\nHost: a\r\n{FIREFOX}\r\n"));
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    client.head().unwrap();
    drop(client);
    gateway.is_idle_again();
    assert_eq!(numbers(&document(&gateway)["populations"][0]), [1, 0, 1]);
}

#[test]
fn a_session_reads_on_if_it_asks_for_anything_after_its_first_page() {
    let upstream = Upstream::app(|_| with_fields("Set-Cookie: sid=1\r\n", "page"));
    let gateway = site(&upstream).set("identify.session", "'cookie:sid'").start();
    visit(&gateway, 1, "/one", FIREFOX);
    let with_cookie = format!("{FIREFOX}Cookie: sid=1\r\n");
    for target in ["/two", "/three"] {
        visit(&gateway, 1, target, &with_cookie);
    }
    let found = document(&gateway);
    assert_eq!(numbers(&found["populations"][0]), [1, 1, 1], "{found}");
    visit(&gateway, 1, "/manifest.json", FIREFOX);
    assert_eq!(numbers(&document(&gateway)["populations"][0]), [1, 1, 2], "it reads on once");
    let requests = json_of(&gateway, "/v1/requests");
    assert_eq!(requests["requests"][1]["population"], Value::Null);
    assert_eq!(requests["requests"][3]["population"], found["populations"][0]["name"]);
}

#[test]
fn populations_can_be_switched_off() {
    let upstream = Upstream::app(|_| with_fields("", "page"));
    let gateway = site(&upstream).set("identify.populations", "false").start();
    visit(&gateway, 1, "/one", FIREFOX);
    let found = document(&gateway);
    assert_eq!((&found["ranks"], &found["count"]), (&false.into(), &0.into()), "{found}");
    assert_eq!(numbers(&found["others"]), [0, 0, 0]);
}

#[test]
fn an_operator_sets_the_level_of_a_population() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = site(&upstream).limit(1).set("scheduler.capacity", "1").start();
    let asks = |address: u8, fields: &str| {
        gateway.sends(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.{address}\r\n{fields}\r\n"
        ))
    };
    let mut first = asks(1, LIBRARY);
    calls.next().answer("");
    first.answer().unwrap();
    gateway.is_idle_again();
    let name = document(&gateway)["populations"][0]["name"].as_str().unwrap().to_owned();
    for (population, level, status) in [(&*name, 8, 400), ("ff", 7, 400), (&*name, 3, 200)] {
        let body = json!({"population": population, "level": level, "why": "a scraper"});
        let answer = says(&gateway, "/v1/policy/population", &body);
        assert_eq!(answer.status(), Some(status), "{}", answer.text());
    }
    let found = &document(&gateway)["populations"][0];
    assert_eq!((&found["level"], &found["overridden"]), (&3.into(), &1.into()));
    let _running = asks(2, FIREFOX);
    let _call = calls.next();
    let mut scraper = asks(3, LIBRARY);
    gateway.waits_for("waiting", 1);
    let _reader = asks(4, FIREFOX);
    assert_eq!(scraper.answer().unwrap().status(), Some(503), "the reader takes its place");
    assert_eq!(says(&gateway, "/v1/policy/1/undo", &json!({"why": "over"})).status(), Some(200));
    assert_eq!(document(&gateway)["populations"][0]["overridden"], Value::Null);
}
