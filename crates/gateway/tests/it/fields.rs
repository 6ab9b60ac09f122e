//! Which fields go on, in both directions.

use crate::setup::{Setup, get};
use crate::upstream::{Upstream, with_fields};
use crate::wire::Message;

/// What the upstream gets of a request with these fields.
fn forwarded(fields: impl AsRef<[u8]>) -> Message {
    forwarded_by(|setup| setup, fields)
}

/// The same of a request that has come through a hop of the operator's own.
fn forwarded_from_a_trusted_hop(fields: impl AsRef<[u8]>) -> Message {
    forwarded_by(|setup| setup.set("listen.trusted_proxies", "['127.0.0.0/8']"), fields)
}

fn forwarded_by(how: fn(Setup) -> Setup, fields: impl AsRef<[u8]>) -> Message {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = how(Setup::before(&upstream)).start();
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
        [
            "Bywash-Deadline",
            "Bywash-Request",
            "Host",
            "Via",
            "X-End",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
            "X-Real-IP"
        ]
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
    assert_eq!(names, ["Content-Length", "X-End"]);
}

#[test]
fn nobody_else_sets_our_fields() {
    let request = forwarded(
        "bywash-request: 1\r\nbywash-deadline: 1x\r\nBYWASH-Class: pay\r\nbywash_level: gold\r\nBywash.Level: gold\r\n\
         Bywashing: day\r\n",
    );
    let ours = names(&request).into_iter().filter(|name| name.to_lowercase().starts_with("bywash"));
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours, ["Bywashing", "Bywash-Request", "Bywash-Deadline"]);
    assert_eq!(request.all("bywash-deadline"), ["60000"]);
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
    assert_eq!(request.all("x-forwarded-host"), ["shop.example"]);
    assert_eq!(request.all("x-real-ip"), ["127.0.0.1"]);
    assert_eq!(request.all("forwarded"), NOTHING);
}

/// What hops in front say of where a request comes from.
const CHAIN: &str = "Via: 1.0 fred\r\nX-Forwarded-For: 198.51.100.7, 203.0.113.9\r\n\
                     X-Forwarded-For: ::1\r\nX-Forwarded-Proto: https\r\n\
                     X-Forwarded-Host: front.example\r\nX-Forwarded-Port: 443\r\n\
                     X-Real-IP: 192.0.2.1\r\nForwarded: for=198.51.100.7;proto=https\r\n";

#[test]
fn what_a_stranger_says_of_where_it_comes_from_is_thrown_away() {
    let request = forwarded(CHAIN);
    assert_eq!(request.all("via"), ["1.0 fred", "1.1 bywash"]);
    assert_eq!(request.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["http"]);
    assert_eq!(request.all("x-forwarded-host"), ["shop.example"]);
    assert_eq!(request.all("x-real-ip"), ["127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-port"), NOTHING);
    assert_eq!(request.all("forwarded"), NOTHING);
}

#[test]
fn what_a_stranger_says_is_thrown_away_however_it_is_spelt() {
    let request = forwarded(
        "X_Forwarded_For: 192.0.2.1\r\nx-forwarded-FOR: 192.0.2.1\r\nX_Real_IP: 192.0.2.1\r\n",
    );
    assert_eq!(request.all("x_forwarded_for"), NOTHING);
    assert_eq!(request.all("x_real_ip"), NOTHING);
    assert_eq!(request.all("x-forwarded-for"), ["127.0.0.1"]);
}

#[test]
fn what_a_trusted_hop_says_is_gone_on_from() {
    let request = forwarded_from_a_trusted_hop(CHAIN);
    assert_eq!(request.all("via"), ["1.0 fred", "1.1 bywash"]);
    assert_eq!(request.all("x-forwarded-for"), ["198.51.100.7, 203.0.113.9, ::1, 127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    assert_eq!(request.all("x-forwarded-host"), ["front.example"]);
    assert_eq!(request.all("x-forwarded-port"), ["443"]);
    // The last that is no trusted hop; what is said in X-Real-IP nobody has to vouch for.
    assert_eq!(request.all("x-real-ip"), ["::1"]);
    // A hop that speaks X-Forwarded-For may have passed a client's on as it came.
    assert_eq!(request.all("forwarded"), NOTHING);
}

#[test]
fn a_chain_of_forwarders_that_is_no_text_does_not_hide_the_client() {
    for request in [
        forwarded(b"X-Forwarded-For: 10.0.0.1\xff\r\n"),
        forwarded_from_a_trusted_hop(b"X-Forwarded-For: 10.0.0.1\xff\r\n"),
    ] {
        let chain = request.all("x-forwarded-for");
        assert!(matches!(chain[..], [one] if one.ends_with("127.0.0.1")), "{chain:?}");
        assert_eq!(request.all("x-real-ip"), ["127.0.0.1"]);
    }
}

#[test]
fn a_client_does_not_choose_its_own_protocol() {
    assert_eq!(forwarded("X-Forwarded-Proto: https\r\n").all("x-forwarded-proto"), ["http"]);
}

#[test]
fn names_keep_their_spelling() {
    let request = forwarded("X-ODD-Name: 1\r\nx-lower: 2\r\nETag-ish: 3\r\n");
    let names = names(&request);
    for name in ["Host", "X-ODD-Name", "x-lower", "ETag-ish"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let answer = answered("ETag: \"x\"\r\nx-lower: 2\r\nWWW-Authenticate: Basic\r\n");
    let names = self::names(&answer);
    for name in ["ETag", "x-lower", "WWW-Authenticate"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
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
    let mut client = gateway.sends(head);
    assert_eq!(client.answer().unwrap().text(), "/chat");
    client.send(get("/next"));
    assert_eq!(client.answer().unwrap().text(), "/next");
}

/// Sorted, as some hops sort fields, the other spelling stands behind their own.
#[test]
fn what_a_trusted_hop_lets_through_in_another_spelling_is_not_believed() {
    let request = forwarded_from_a_trusted_hop(
        "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX_Forwarded_For: 6.6.6.6\r\n\
         X.Forwarded.Proto: http\r\nX_Real_IP: 6.6.6.6\r\nX_Forwarded_User: root\r\n",
    );
    assert_eq!(request.all("x-real-ip"), ["192.0.2.1"]);
    assert_eq!(request.all("x-forwarded-for"), ["192.0.2.1, 127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    for name in ["x_forwarded_for", "x.forwarded.proto", "x_real_ip", "x_forwarded_user"] {
        assert_eq!(request.all(name), NOTHING);
    }
}

#[test]
fn trust_ends_with_a_reload_on_connections_that_are_open_too() {
    let upstream = Upstream::app(|request| with_fields("", request.field("x-real-ip").unwrap()));
    let trusting =
        |networks: &str| Setup::before(&upstream).set("listen.trusted_proxies", networks);
    let gateway = trusting("['127.0.0.0/8']").start();
    let mut hop = gateway.client();
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
    hop.send(request);
    assert_eq!(hop.answer().unwrap().text(), "192.0.2.1");
    gateway.reload(&trusting("[]")).unwrap();
    hop.send(request);
    assert_eq!(hop.answer().unwrap().text(), "127.0.0.1");
}
