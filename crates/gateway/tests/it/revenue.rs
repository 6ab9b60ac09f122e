//! Tests of the revenue of successful answers. It is counted for the class, the application may
//! name it, and the client does not see it.

use crate::setup::{Running, Setup, eventually, get, post};
use crate::upstream::{Calls, Upstream, with_fields};

const REVENUE: &str = "bywash_revenue_total{class=\"order\"}";

/// Starts a shop where `/order` brings 40 on average. `lines` are further keys of its class.
fn shop(lines: &str) -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let class = format!("{{ match = ['* /order'], revenue = 40 {lines} }}");
    let gateway = Setup::before(&upstream).set("class.order", &class).start();
    (upstream, calls, gateway)
}

/// Returns the revenue of the class after a GET got this answer.
fn revenue_by(gateway: &Running, calls: &Calls, answer: &str) -> f64 {
    revenue_with(gateway, calls, &get("/order"), answer)
}

fn revenue_with(gateway: &Running, calls: &Calls, request: &str, answer: &str) -> f64 {
    let ended = || gateway.outcomes().values().sum::<u64>();
    let before = ended();
    let mut client = gateway.sends(request);
    calls.next().send(answer);
    assert_eq!(client.answer().unwrap().field("order-total"), None);
    eventually("the request has ended", || ended() == before + 1);
    gateway.metric(REVENUE)
}

#[test]
fn a_success_brings_what_its_class_brings_and_an_error_nothing() {
    let (_upstream, calls, gateway) = shop("");
    assert_eq!(gateway.metric(REVENUE), 0.0);
    assert_eq!(revenue_by(&gateway, &calls, &with_status("200 OK", "")), 40.0);
    assert_eq!(revenue_by(&gateway, &calls, &with_status("201 Created", "")), 80.0);
    for status in ["404 Not Found", "422 Unprocessable Content", "503 Busy"] {
        assert_eq!(revenue_by(&gateway, &calls, &with_status(status, "")), 80.0, "{status}");
    }
}

#[test]
fn a_redirection_brings_something_where_something_was_done_and_else_nothing() {
    let (_upstream, calls, gateway) = shop("");
    for status in ["302 Found", "303 See Other", "304 Not Modified", "307 Temporary Redirect"] {
        assert_eq!(revenue_by(&gateway, &calls, &with_status(status, "")), 0.0, "{status}");
    }
    let (order, done) = (post("/order", "a=1"), with_status("303 See Other", ""));
    assert_eq!(revenue_with(&gateway, &calls, &order, &done), 40.0);
    // A redirection in response to a GET brings nothing even if the application names the amount.
    let (_upstream, calls, gateway) = shop(", revenue_header = 'Order-Total'");
    let redirect = with_status("302 Found", "Order-Total: 12\r\n");
    assert_eq!(revenue_by(&gateway, &calls, &redirect), 0.0);
    assert_eq!(revenue_with(&gateway, &calls, &order, &redirect), 12.0);
}

#[test]
fn with_a_field_for_it_an_answer_brings_what_the_field_says_and_no_more_than_may_be() {
    let (_upstream, calls, gateway) = shop(", revenue_header = 'Order-Total'");
    let mut sum = 0.0;
    for (status, fields, brings) in [
        ("200 OK", "", 0.0),
        ("200 OK", "ORDER-total: 12.50\r\n", 12.5),
        ("402 Payment Required", "Order-Total: 99\r\n", 0.0),
        ("200 OK", "Order-Total: 99 EUR\r\n", 0.0),
        ("200 OK", "Order-Total: 1\r\nOrder-Total: 1\r\n", 0.0),
        ("200 OK", "Order-Total: 99999999\r\n", 4000.0),
    ] {
        sum += brings;
        let answer = with_status(status, fields);
        assert_eq!(revenue_by(&gateway, &calls, &answer), sum, "{answer}");
    }
}

#[test]
fn a_class_says_by_status_and_fields_what_its_successes_are() {
    let lines =
        ", success = ['status 200', 'status 302', 'header Location: */thanks*', 'header X-Order']";
    let (_upstream, calls, gateway) = shop(lines);
    let mut sum = 0.0;
    for (status, fields, brings) in [
        ("302 Found", "Location: /thanks?id=1\r\nX-Order: 1\r\n", 40.0),
        ("200 OK", "X-Order:\r\nLocation: /en/thanks\r\n", 40.0),
        ("302 Found", "Location: /basket\r\nX-Order: 1\r\n", 0.0),
        ("302 Found", "Location: /login?next=/thanks\r\nX-Order: 1\r\n", 0.0),
        ("302 Found", "Location: https://thanks.example/login\r\nX-Order: 1\r\n", 0.0),
        ("302 Found", "Location: /thanks\r\n", 0.0),
        ("303 See Other", "Location: /thanks\r\nX-Order: 1\r\n", 0.0),
    ] {
        sum += brings;
        let answer = with_status(status, fields);
        assert_eq!(revenue_by(&gateway, &calls, &answer), sum, "{answer}");
    }
}

#[test]
fn a_body_says_that_it_is_a_success_and_is_asked_for_uncompressed() {
    let (_upstream, calls, gateway) = shop(", success = ['json result: success']");
    let mut sum = 0.0;
    let long = format!("{{\"result\":\"success\"}}{}", " ".repeat(1_000_000));
    for (body, brings) in [
        (r#"{"result":"success","redirect":"/thanks"}"#, 40.0),
        (r#"{"result":"failure"}"#, 0.0),
        ("<html>success</html>", 0.0),
        ("", 0.0),
        (&long, 0.0),
    ] {
        sum += brings;
        let ended = gateway.outcome("served");
        let asked = get("/order").replace("\r\n\r\n", "\r\nAccept-Encoding: gzip\r\n\r\n");
        let mut client = gateway.sends(asked);
        let call = calls.next();
        assert_eq!(call.request.field("accept-encoding"), None);
        call.answer(body);
        assert_eq!(client.answer().unwrap().text(), body, "the client gets it as it is");
        gateway.waits_for_outcome("served", ended + 1);
        assert_eq!(gateway.metric(REVENUE), sum, "{body:.80}");
    }
    assert_eq!(unread(&gateway, "too_long"), 1.0);
    // A compressed answer brings no revenue, and is counted as unread.
    assert_eq!(unread(&gateway, "compressed"), 0.0);
    let compressed = with_fields("Content-Encoding: gzip\r\n", r#"{"result":"success"}"#);
    let compressed = String::from_utf8(compressed).unwrap();
    assert_eq!(revenue_by(&gateway, &calls, &compressed), sum);
    assert_eq!(unread(&gateway, "compressed"), 1.0);
    // An answer that breaks off brings no revenue, whatever its content was.
    let mut client = gateway.sends(get("/order"));
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"result\":\"success\"}";
    calls.next().send_and_close(answer);
    assert!(client.answer().is_err());
    gateway.waits_for_outcome("upstream_error", 1);
    assert_eq!(gateway.metric(REVENUE), sum);
}

/// Returns the number of answers of the class whose JSON could not be read, for this cause.
fn unread(gateway: &Running, cause: &str) -> f64 {
    gateway.metric(&format!("bywash_success_unread_total{{class=\"order\",cause=\"{cause}\"}}"))
}

#[test]
fn half_an_answer_brings_nothing() {
    let (_upstream, calls, gateway) = shop("");
    let mut client = gateway.sends(get("/order"));
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    client.head().unwrap();
    drop(client);
    gateway.waits_for_outcome("orphaned", 1);
    assert_eq!(gateway.metric(REVENUE), 0.0);
}

#[test]
fn an_event_stream_brings_what_it_brings_when_it_begins() {
    let (_upstream, calls, gateway) = shop("");
    let mut client = gateway.sends(get("/order"));
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
    client.head().unwrap();
    drop(client);
    gateway.waits_for_outcome("orphaned", 1);
    assert_eq!(gateway.metric(REVENUE), 40.0);
}

fn with_status(status: &str, fields: &str) -> String {
    let ok = String::from_utf8(with_fields(fields, "")).unwrap();
    ok.replacen("200 OK", status, 1)
}
