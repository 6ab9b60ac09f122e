//! Which fields go on, in both directions.

use crate::setup::{Setup, get};
use crate::upstream::{Upstream, with_fields};
use crate::wire::Message;

/// What the upstream gets of a request with these fields.
fn forwarded(fields: impl AsRef<[u8]>) -> Message {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let head = b"GET / HTTP/1.1\r\nHost: shop.example\r\n".as_slice();
    let _client = gateway.sends([head, fields.as_ref(), b"\r\n"].concat());
    calls.next().request
}

/// What the client gets of an answer with these fields.
fn answered(fields: &'static str) -> Message {
    let upstream = Upstream::app(move |_| with_fields(fields, "body"));
    let gateway = Setup::before(&upstream).start();
    let answer = gateway.get("/");
    assert_eq!(answer.text(), "body");
    answer
}

fn names(message: &Message) -> Vec<&str> {
    message.fields.iter().map(|(name, _)| name.as_str()).collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn the_upstream_gets_one_host_and_it_is_the_clients() {
    assert_eq!(forwarded("").all("host"), ["shop.example"]);
}

#[test]
fn what_belongs_to_the_clients_connection_stays_there() {
    let request = forwarded(
        "Connection: keep-alive, X-Hop , ,x-other\r\nConnection: X-Third\r\nX-Hop: 1\r\n\
         X-Other: 2\r\nX-Third: 3\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\
         TE: trailers\r\nUpgrade: websocket\r\nX-End: 4\r\n",
    );
    let mut names = names(&request);
    names.sort_unstable();
    assert_eq!(
        names,
        ["bywash-request", "host", "via", "x-end", "x-forwarded-for", "x-forwarded-proto"]
    );
}

#[test]
fn what_belongs_to_the_upstreams_connection_stays_there() {
    let answer = answered(
        "Connection: X-Hop, content-length\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Connection: close\r\nUpgrade: h2c\r\nX-End: 2\r\n",
    );
    let mut names = names(&answer);
    names.sort_unstable();
    assert_eq!(names, ["content-length", "date", "x-end"]);
}

#[test]
fn nobody_else_sets_our_fields() {
    let request = forwarded(
        "bywash-request: 1\r\nBYWASH-Class: pay\r\nbywash_level: gold\r\nBywash.Level: gold\r\n\
         Bywashing: day\r\n",
    );
    let ours = names(&request).into_iter().filter(|name| name.starts_with("bywash"));
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours, ["bywashing", "bywash-request"]);
    let name = request.field("bywash-request").unwrap();
    assert!(name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
}

#[test]
fn every_request_has_a_name_of_its_own() {
    let upstream = Upstream::app(|request| {
        with_fields("", request.field("bywash-request").unwrap_or_default())
    });
    let gateway = Setup::before(&upstream).start();
    assert_ne!(gateway.get("/").text(), gateway.get("/").text());
}

#[test]
fn the_gateway_names_itself_and_the_client() {
    let request = forwarded("");
    assert_eq!(request.all("via"), ["1.1 bywash"]);
    assert_eq!(request.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["http"]);
}

#[test]
fn the_gateway_joins_those_that_came_before() {
    let request = forwarded(
        "Via: 1.0 fred\r\nX-Forwarded-For: 198.51.100.7, 203.0.113.9\r\nX-Forwarded-For: ::1\r\n",
    );
    assert_eq!(request.all("via"), ["1.0 fred", "1.1 bywash"]);
    assert_eq!(request.all("x-forwarded-for"), ["198.51.100.7, 203.0.113.9, ::1, 127.0.0.1"]);
}

#[test]
fn a_chain_of_forwarders_that_is_no_text_does_not_hide_the_client() {
    let request = forwarded(b"X-Forwarded-For: 10.0.0.1\xff\r\n");
    let chain = request.all("x-forwarded-for");
    assert!(matches!(chain[..], [one] if one.ends_with("127.0.0.1")), "{chain:?}");
}

#[test]
#[ignore = "a client may say that it came by https; the gateway knows that it did not"]
fn a_client_does_not_choose_its_own_protocol() {
    assert_eq!(forwarded("X-Forwarded-Proto: https\r\n").all("x-forwarded-proto"), ["http"]);
}

#[test]
fn via_says_what_the_client_speaks() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let _client = gateway.sends("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(calls.next().request.all("via"), ["1.0 bywash"]);
}

#[test]
fn fields_nominated_beside_a_byte_that_is_no_text_are_removed() {
    let request = forwarded(b"Connection: x-hop, \xff\r\nX-Hop: 1\r\n");
    assert_eq!(request.all("x-hop"), NOTHING);
}

#[test]
fn ordinary_fields_go_on_unchanged() {
    let request = forwarded(
        b"Cookie: a=1\r\nCookie: sid=2; b=3\r\nAuthorization: Basic eDp5\r\nX-Bytes: \x80\xfe\r\n\
          X-Empty:\r\nX-Twice: 1\r\nX-Twice: 2\r\nX_Under: 1\r\nPriority: u=0\r\n",
    );
    assert_eq!(request.all("cookie"), ["a=1", "sid=2; b=3"]);
    assert_eq!(request.all("authorization"), ["Basic eDp5"]);
    assert_eq!(request.all("x-bytes"), ["\u{80}\u{fe}"]);
    assert_eq!(request.all("x-empty"), [""]);
    assert_eq!(request.all("x-twice"), ["1", "2"]);
    assert_eq!(request.all("x_under"), ["1"]);
}

#[test]
fn fields_of_answers_go_on_unchanged() {
    let answer = answered(
        "Set-Cookie: a=1\r\nSet-Cookie: b=2; Path=/\r\nServer: app\r\nVia: 1.1 other\r\n\
         Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nX-Bytes: caf\u{e9}\r\nWarning: 1\r\n",
    );
    assert_eq!(answer.all("set-cookie"), ["a=1", "b=2; Path=/"]);
    assert_eq!(answer.all("date"), ["Sun, 06 Nov 1994 08:49:37 GMT"]);
    assert_eq!(answer.all("server"), ["app"]);
    // UTF-8 on the wire, shown byte by byte.
    assert_eq!(answer.all("x-bytes"), ["caf\u{c3}\u{a9}"]);
}

#[test]
fn an_upgrade_is_a_request_like_any_other() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let head = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let mut client = gateway.sends(head.to_owned() + &get("/next"));
    assert_eq!(client.answer().unwrap().text(), "/chat");
    assert_eq!(client.answer().unwrap().text(), "/next");
}
