//! Tests of the priority between sessions: by what a session has proven, not by what it only
//! claims.

use crate::setup::{Running, Setup, admin, eventually};
use crate::upstream::{Calls, Upstream, ok, with_fields};
use crate::wire::{Message, Wire};

/// Starts a shop with one slot and one place in the queue. `/pay` is a transaction for sessions
/// that have seen `/p/*`.
fn shop() -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(1)
        .set("scheduler.capacity", "1")
        .set("class.product", "{ match = ['GET /p/**'] }")
        .set("class.pay", "{ match = ['POST /pay'], tier = 'transaction', requires = ['product'] }")
        .start();
    (upstream, calls, gateway)
}

fn with_cookie(request: &str, cookie: &str) -> String {
    format!("{request} HTTP/1.1\r\nHost: a\r\nCookie: a=b; sid={cookie}; c=d\r\n\r\n")
}

/// Sends a request, lets the upstream answer it at once with these fields, and returns the answer.
fn visit(calls: &Calls, client: &mut Wire, request: &str, fields: &str) -> Message {
    client.send(request);
    calls.next().send(with_fields(fields, ""));
    client.answer().unwrap()
}

/// Takes the slot with one request, and the only place in the queue with a request of a new
/// session.
fn fill_queue(gateway: &Running, calls: &Calls) -> [Wire; 2] {
    let running = gateway.asks("/runs");
    // The request stays unanswered, so the slot is taken until the test ends.
    std::mem::forget(calls.next());
    let waiting = gateway.asks("/new-here");
    gateway.waits_for("waiting", 1);
    [running, waiting]
}

fn reason(answer: &Message) -> &str {
    let mut parameters = answer.field("proxy-status").unwrap().split("; ");
    parameters.find_map(|one| one.strip_prefix("bywash-reason=")).unwrap()
}

#[test]
fn a_transaction_of_a_proven_session_evicts_a_newcomer() {
    let (_upstream, calls, gateway) = shop();
    let mut visitor = gateway.client();
    visit(&calls, &mut visitor, &with_cookie("GET /p/1", "walked"), "");
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 1);
    let [_running, mut newcomer] = fill_queue(&gateway, &calls);
    visitor.send(with_cookie("POST /pay", "walked"));
    let refusal = newcomer.answer().unwrap();
    assert_eq!((refusal.status(), reason(&refusal)), (Some(503), "evicted"));
    assert_eq!(gateway.count("waiting"), 1);
    // The refused client keeps its connection.
    newcomer.send(crate::setup::get("/"));
    assert_eq!(reason(&newcomer.answer().unwrap()), "queue_full");
}

#[test]
fn an_odd_spelling_proves_nothing() {
    let (_upstream, calls, gateway) = shop();
    let mut visitor = gateway.client();
    for path in ["//p/1", "/p;x/1"] {
        visit(&calls, &mut visitor, &with_cookie(&format!("GET {path}"), "walked"), "");
    }
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 0);
}

#[test]
fn a_session_that_the_upstream_has_begun_is_proven_by_its_own_cookie() {
    let (_upstream, calls, gateway) = shop();
    let mut visitor = gateway.client();
    let fields = "Set-Cookie: other=1\r\nSet-Cookie: sid=fresh; Path=/; HttpOnly\r\n";
    let answer = visit(&calls, &mut visitor, &crate::setup::get("/p/1"), fields);
    assert_eq!(answer.all("set-cookie"), ["other=1", "sid=fresh; Path=/; HttpOnly"]);
    gateway.is_idle_again();
    let [_running, mut newcomer] = fill_queue(&gateway, &calls);
    visitor.send(with_cookie("POST /pay", "fresh"));
    assert_eq!(reason(&newcomer.answer().unwrap()), "evicted");
}

#[test]
fn a_session_whose_cookie_is_renewed_keeps_what_it_has_proven() {
    let (_upstream, calls, gateway) = shop();
    let mut visitor = gateway.client();
    visit(&calls, &mut visitor, &with_cookie("GET /p/1", "first"), "");
    let renewed = "Set-Cookie: sid=second\r\n";
    visit(&calls, &mut visitor, &with_cookie("GET /", "first"), renewed);
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 1);
    let [_running, mut newcomer] = fill_queue(&gateway, &calls);
    visitor.send(with_cookie("POST /pay", "second"));
    assert_eq!(reason(&newcomer.answer().unwrap()), "evicted");
}

#[test]
fn a_logout_makes_no_session_of_what_it_leaves_in_the_cookie() {
    let (_upstream, calls, gateway) = shop();
    let mut visitor = gateway.client();
    visit(&calls, &mut visitor, &with_cookie("GET /p/1", "walked"), "");
    let logout = "Set-Cookie: sid=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0\r\n";
    visit(&calls, &mut visitor, &with_cookie("GET /logout", "walked"), logout);
    gateway.is_idle_again();
    let _filled = fill_queue(&gateway, &calls);
    let mut liar = gateway.sends(with_cookie("POST /pay", "deleted"));
    assert_eq!(reason(&liar.answer().unwrap()), "queue_full");
}

#[test]
fn a_made_up_cookie_evicts_nobody() {
    let (_upstream, calls, gateway) = shop();
    let mut visitor = gateway.client();
    visit(&calls, &mut visitor, &with_cookie("GET /p/1", "walked"), "");
    let _filled = fill_queue(&gateway, &calls);
    let mut liar = gateway.sends(with_cookie("POST /pay", "made-up"));
    assert_eq!(reason(&liar.answer().unwrap()), "queue_full");
}

#[test]
fn a_refused_request_proves_nothing() {
    let (_upstream, calls, gateway) = shop();
    let _filled = fill_queue(&gateway, &calls);
    let mut liar = gateway.client();
    for request in ["GET /p/1", "GET /p/2", "POST /pay"] {
        liar.send(with_cookie(request, "liar"));
        assert_eq!(reason(&liar.answer().unwrap()), "queue_full");
    }
    assert_eq!(gateway.count("sessions"), 0);
}

#[test]
fn an_answer_that_is_an_error_proves_nothing() {
    for status in ["404 Not Found", "403 Forbidden", "500 Oops"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        let upstream = Upstream::app(move |_| answer.clone().into_bytes());
        let gateway = Setup::before(&upstream).start();
        gateway.sends(with_cookie("GET /p/1", "other")).answer().unwrap();
        gateway.is_idle_again();
        assert_eq!(gateway.count("sessions"), 0, "{status}");
    }
}

/// Starts a gateway before an application that responds to everything with this status and these
/// fields. `/login` is required for `/pay`.
fn answers(status: &'static str, fields: &'static str) -> (Upstream, Running) {
    let upstream = Upstream::app(move |_| {
        format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 0\r\n\r\n").into_bytes()
    });
    let gateway = Setup::before(&upstream)
        .set("class.login", "{ match = ['* /login'] }")
        .set("class.pay", "{ match = ['POST /pay'], tier = 'transaction', requires = ['login'] }")
        .start();
    (upstream, gateway)
}

#[test]
fn a_redirection_proves_a_session_where_its_class_proves_something() {
    for request in ["POST /login", "GET /login", "POST /pay"] {
        let (_upstream, gateway) = answers("303 See Other", "");
        gateway.sends(with_cookie(request, "1")).answer().unwrap();
        gateway.is_idle_again();
        assert_eq!(gateway.count("sessions"), 1, "{request}");
    }
    let (_upstream, gateway) = answers("303 See Other", "Set-Cookie: sid=1\r\n");
    gateway.get("/login");
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 1);
}

#[test]
fn only_a_success_of_its_class_proves_something_to_another() {
    const WRONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"ok\":false}";
    let of_status = "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n";
    let of_body = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}";
    for (success, right) in [("status 302", of_status), ("json ok: true", of_body)] {
        let upstream = Upstream::app(move |request| {
            let answer = if request.target() == "/login?right" { right } else { WRONG };
            answer.as_bytes().to_vec()
        });
        let login = format!("{{ match = ['POST /login'], success = ['{success}'] }}");
        let gateway = Setup::before(&upstream)
            .set("class.login", &login)
            .set(
                "class.pay",
                "{ match = ['POST /pay'], tier = 'transaction', requires = ['login'] }",
            )
            .start();
        let stands = |standing: &str| {
            let labels = format!("class=\"pay\",standing=\"{standing}\"");
            gateway.metric(&format!("bywash_standings_total{{{labels}}}"))
        };
        let mut client = gateway.client();
        for (login, standing) in
            [("POST /login", "in_progress"), ("POST /login?right", "transaction")]
        {
            for line in [login, "POST /pay"] {
                client.send(with_cookie(line, "1"));
                client.answer().unwrap();
            }
            eventually(success, || stands(standing) == 1.0);
        }
    }
}

#[test]
fn a_redirection_of_another_class_and_an_answer_that_is_not_modified_begin_no_session() {
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
        let (_upstream, gateway) = answers(status, "");
        gateway.sends(with_cookie("GET /", "1")).answer().unwrap();
        gateway.is_idle_again();
        assert_eq!(gateway.count("sessions"), 0, "{status}");
    }
    for request in ["GET /", "GET /login"] {
        let (_upstream, gateway) = answers("304 Not Modified", "");
        gateway.sends(with_cookie(request, "1")).answer().unwrap();
        gateway.is_idle_again();
        assert_eq!(gateway.count("sessions"), 0, "{request}");
    }
}

#[test]
fn invented_cookies_take_nothing_from_a_session_that_has_proven_something() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(1)
        .set("scheduler.capacity", "1")
        .set("identify.sessions", "100")
        .set("class.login", "{ match = ['POST /login'], tier = 'transaction' }")
        .set("class.pay", "{ match = ['POST /pay'], tier = 'transaction', requires = ['login'] }")
        .start();
    let mut buyer = gateway.client();
    visit(&calls, &mut buyer, &with_cookie("POST /login", "buyer"), "");
    let mut attacker = gateway.client();
    for number in 0..150 {
        let request = with_cookie("GET /", &format!("invented-{number}"));
        visit(&calls, &mut attacker, &request, "");
    }
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 100);
    let evicted = |segment| {
        gateway.metric(&format!("bywash_sessions_evicted_total{{segment=\"{segment}\"}}"))
    };
    assert_eq!((evicted("fresh"), evicted("proven")), (51.0, 0.0));
    assert_eq!(gateway.metric("bywash_sessions_over_quota_total"), 51.0);
    let text = admin(gateway.admin(), "/v1/sessions").text();
    assert!(text.contains("\"proven\":1,"), "{text}");
    let [_running, mut newcomer] = fill_queue(&gateway, &calls);
    buyer.send(with_cookie("POST /pay", "buyer"));
    assert_eq!(reason(&newcomer.answer().unwrap()), "evicted");
}

#[test]
fn half_an_answer_proves_nothing() {
    let (_upstream, calls, gateway) = shop();
    let mut visitor = gateway.sends(with_cookie("GET /p/1", "walked"));
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    visitor.head().unwrap();
    drop(visitor);
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 0);
}

#[test]
fn without_a_session_cookie_nobody_is_remembered() {
    let upstream = Upstream::app(|_| with_fields("Set-Cookie: sid=1\r\n", ""));
    let gateway = Setup::before(&upstream).set("identify.session", "'none'").start();
    gateway.sends(with_cookie("GET /", "1")).answer().unwrap();
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 0);
}

#[test]
fn one_address_may_wait_only_so_often() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(1)
        .set("scheduler.principal_cap", "2")
        .set("identify.principal", "'address'")
        .start();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let mut waiting = Vec::new();
    for number in 1..=2 {
        waiting.push(gateway.asks("/waits"));
        gateway.waits_for("waiting", number);
    }
    let refused = gateway.get("/once-more");
    assert_eq!((refused.status(), reason(&refused)), (Some(429), "principal_cap"));
    // A client that leaves makes room.
    waiting.pop();
    gateway.waits_for("waiting", 1);
    waiting.push(gateway.asks("/waits"));
    gateway.waits_for("waiting", 2);
    call.send_and_close(ok(""));
}

#[test]
fn the_status_counts_standings_and_says_why_no_purchase_is_a_transaction() {
    let upstream = Upstream::echo();
    let setup = Setup::before(&upstream)
        .set("identify.session", "'cookie:sid'")
        .set("class.step", "{ match = ['GET /step'] }")
        .set("class.pay", "{ match = ['* /pay'], tier = 'transaction', requires = ['step'] }");
    let gateway = setup.start();
    let mut client = gateway.client();
    let mut asks = |line: &str, cookie: &str| {
        client.send(with_cookie(line, cookie));
        assert_eq!(client.answer().unwrap().status(), Some(200));
    };
    let pay = |gateway: &Running| {
        let status = gateway.status();
        let classes = status["classes"].as_array().unwrap().iter();
        classes.clone().find(|class| class["name"] == "pay").unwrap().clone()
    };
    for visitor in 0..20 {
        asks("GET /pay", &format!("stranger{visitor}"));
    }
    let warning = |gateway: &Running| pay(gateway)["warning"].as_str().unwrap_or("").to_owned();
    eventually("all are counted", || pay(&gateway)["standings"]["new"] == 20);
    assert!(warning(&gateway).contains("identify.session"), "{}", warning(&gateway));
    asks("GET /", "visitor");
    asks("GET /pay", "visitor");
    eventually("it is counted", || pay(&gateway)["standings"]["in_progress"] == 1);
    assert!(warning(&gateway).contains("served `step`"), "{}", warning(&gateway));
    asks("GET /step", "visitor");
    asks("GET /pay", "visitor");
    eventually("it is counted", || pay(&gateway)["standings"]["transaction"] == 1);
    assert_eq!(warning(&gateway), "");
    let sample = "bywash_standings_total{class=\"pay\",standing=\"transaction\"}";
    assert_eq!(gateway.metric(sample), 1.0);
}
