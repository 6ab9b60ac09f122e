//! Tests of the fields that are forwarded, in both directions.

use crate::setup::{Running, Setup, get};
use crate::upstream::{Upstream, with_fields};
use crate::wire::Message;

/// Returns the request that the upstream receives when a client sends these fields.
fn forwarded(fields: impl AsRef<[u8]>) -> Message {
    forwarded_by(|setup| setup, fields)
}

/// Returns the request that the upstream receives when a trusted hop sends these fields.
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

/// Returns the answer that the client receives when the upstream sends these fields.
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
    let names: Vec<u64> =
        (0..4).map(|_| u64::from_str_radix(&gateway.get("/").text(), 16).unwrap()).collect();
    let steps: Vec<u64> = names.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    // The names are not a counter: a client that has two names can derive neither the next name nor
    // the number of requests between the two.
    assert!(steps.iter().all(|step| *step > 1 << 32 && *step < u64::MAX << 32), "{names:x?}");
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

/// Fields in which hops in front state where a request comes from.
const CHAIN: &str = "Via: 1.0 fred\r\nX-Forwarded-For: 198.51.100.7, 203.0.113.9\r\n\
                     X-Forwarded-For: ::1\r\nX-Forwarded-Proto: https\r\n\
                     X-Forwarded-Host: front.example\r\nX-Forwarded-Port: 443\r\n\
                     X-Real-IP: 192.0.2.1\r\nForwarded: for=\"[::1]\";proto=http\r\n";

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
    // The client is the last address that is not a trusted hop. Nothing vouches for the claim in
    // X-Real-IP.
    assert_eq!(request.all("x-real-ip"), ["::1"]);
    // A hop that writes X-Forwarded-For may have forwarded a client's `Forwarded` unchanged.
    assert_eq!(request.all("forwarded"), NOTHING);
}

#[test]
fn a_chain_of_forwarders_that_is_no_text_does_not_hide_the_client() {
    for request in [
        forwarded(b"X-Forwarded-For: 10.0.0.1\xff\r\n"),
        forwarded_from_a_trusted_hop(b"X-Forwarded-For: 10.0.0.1\xff\r\n"),
    ] {
        let chain = request.all("x-forwarded-for");
        assert!(matches!(chain[..], ["127.0.0.1" | "unknown, 127.0.0.1"]), "{chain:?}");
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
    // The value is UTF-8 on the wire, and the test shows each byte as a character.
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

/// Some hops sort the fields. The client's spelling of a field then comes after the hop's own
/// field.
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

/// Returns the request that the upstream receives from a hop that writes only `Forwarded`.
fn forwarded_by_a_hop_of_rfc_7239(fields: impl AsRef<[u8]>) -> Message {
    let speaks = |setup: Setup| {
        setup
            .set("listen.trusted_proxies", "['127.0.0.0/8']")
            .set("listen.forwarded", "'forwarded'")
    };
    forwarded_by(speaks, fields)
}

#[test]
fn the_hop_says_who_the_client_is_in_one_field() {
    let request = forwarded_by_a_hop_of_rfc_7239(
        "Forwarded: for=\"192.0.2.9:47\";Proto=HTTPS;host=shop.example;by=_x\r\n\
         Forwarded: for=127.0.0.9;proto=http\r\nX-Forwarded-Proto: http\r\n\
         X-Forwarded-Host: evil.example\r\nX-Forwarded-Port: 1\r\n",
    );
    assert_eq!(request.all("x-real-ip"), ["192.0.2.9"]);
    assert_eq!(request.all("x-forwarded-for"), ["192.0.2.9, 127.0.0.9, 127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    assert_eq!(request.all("x-forwarded-host"), ["shop.example"]);
    assert_eq!(request.all("x-forwarded-port"), NOTHING);
    assert_eq!(
        request.all("forwarded"),
        ["for=192.0.2.9;proto=https;host=shop.example, for=127.0.0.9;proto=http, \
          for=127.0.0.1;proto=http"]
    );
}

/// The client makes its claim in the field that its hop does not write.
#[test]
fn where_the_two_fields_name_different_clients_neither_is_believed() {
    let text = "Forwarded: for=192.0.2.9;proto=https;host=a.example\r\nX-Forwarded-For: 6.6.6.6\r\n\
                X-Forwarded-Host: evil.example\r\n";
    for request in [forwarded_from_a_trusted_hop(text), forwarded_by_a_hop_of_rfc_7239(text)] {
        // The client counts as unknown. It must not count as the hop, because an application may
        // give more rights to the hop's address.
        assert_eq!(request.all("x-forwarded-for"), ["unknown, 127.0.0.1"]);
        assert_eq!(request.all("x-real-ip"), ["unknown"]);
        assert_eq!(request.all("x-forwarded-host"), ["shop.example"]);
    }
    let request = forwarded_by_a_hop_of_rfc_7239(text);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    assert_eq!(request.all("forwarded"), ["for=unknown;proto=https, for=127.0.0.1;proto=http"]);
}

#[test]
fn what_is_not_believed_of_a_hop_is_counted() {
    let upstream = Upstream::echo();
    let hop = |field: &str| {
        let setup = Setup::before(&upstream).set("listen.trusted_proxies", "['127.0.0.0/8']");
        setup.set("listen.forwarded", field).start()
    };
    let (x_forwarded, forwarded) = (hop("'x-forwarded-for'"), hop("'forwarded'"));
    let asks = |gateway: &Running, fields: &str| {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(gateway.sends(head).answer().unwrap().status(), Some(200));
    };
    let both = "Forwarded: for=192.0.2.9\r\nX-Forwarded-For: ";
    for gateway in [&x_forwarded, &forwarded] {
        asks(gateway, &format!("{both}6.6.6.6\r\n"));
        asks(gateway, &format!("{both}192.0.2.9\r\n"));
    }
    asks(&x_forwarded, "Forwarded: for=192.0.2.9\r\n");
    asks(&forwarded, "X-Forwarded-For: 192.0.2.9\r\n");
    asks(&forwarded, "Forwarded: for=\"192.0.2.9\r\n");
    let counted = |gateway: &Running| {
        ["differ", "not_authoritative", "malformed"].map(|why| {
            let sample = format!("bywash_ignored_forwarding_fields_total{{why=\"{why}\"}}");
            gateway.metric(&sample)
        })
    };
    assert_eq!(counted(&x_forwarded), [1.0, 1.0, 0.0]);
    assert_eq!(counted(&forwarded), [1.0, 1.0, 1.0]);
}

/// Fields whose truth only a hop can know, and fields that turn a request into another one.
const CLAIMS: &str = "Proxy: http://6.6.6.6\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n\
                      X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\n\
                      X-Method-Override: DELETE\r\nX-Client-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\n\
                      CF-Connecting-IP: 6.6.6.6\r\nX-Cluster-Client-IP: 6.6.6.6\r\n\
                      X-Forwarded-User: root\r\nX-Remote-User: root\r\nX-SSL-Client-S-DN: root\r\n\
                      Client-Cert: :AA==:\r\nX-Auth-Request-Email: root\r\n";

fn other_spelling(fields: &str, hyphen: &str) -> String {
    let line = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        format!("{}: {value}\r\n", name.replace('-', hyphen))
    };
    fields.split_terminator("\r\n").map(line).collect()
}

fn claims_of(request: &Message) -> Vec<&str> {
    let known = |name: &str| {
        let plain = name.to_ascii_lowercase().replace(['_', '.'], "-");
        CLAIMS.to_ascii_lowercase().contains(&format!("{plain}: "))
    };
    names(request).into_iter().filter(|name| known(name)).collect()
}

#[test]
fn what_applications_would_believe_reaches_none_however_it_is_spelt() {
    for hyphen in ["-", "_", "."] {
        let fields = other_spelling(CLAIMS, hyphen);
        assert_eq!(claims_of(&forwarded(&fields)), NOTHING);
        assert_eq!(claims_of(&forwarded_from_a_trusted_hop(&fields)), NOTHING);
    }
}

#[test]
fn a_key_lets_a_field_through_from_those_who_may_say_it() {
    let passes = |setup: Setup| {
        let names = "['X-HTTP-Method-Override', 'x-original-url', 'x-forwarded-user']";
        setup.set("listen.pass_fields", names)
    };
    let request = forwarded_by(passes, CLAIMS);
    assert_eq!(claims_of(&request), ["X-HTTP-Method-Override"]);
    let trusted = |setup: Setup| setup.set("listen.trusted_proxies", "['127.0.0.0/8']");
    let named = |setup: Setup| {
        let names = "['x-http-method-override', 'x-original-url', 'x-forwarded-user']";
        setup.set("listen.pass_fields", names).set("listen.trusted_proxies", "['127.0.0.0/8']")
    };
    let request = forwarded_by(named, CLAIMS);
    let all = ["X-Original-URL", "X-HTTP-Method-Override", "X-Forwarded-User"];
    assert_eq!(claims_of(&request), all);
    // Other spellings of these fields are not accepted, even from a trusted hop.
    assert_eq!(claims_of(&forwarded_by(named, other_spelling(CLAIMS, "_"))), NOTHING);
    assert_eq!(claims_of(&forwarded_by(trusted, CLAIMS)), NOTHING);
}

#[test]
fn what_would_be_dropped_from_a_head_is_dropped_from_trailers() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: TE\r\nTE: trailers\r\n";
    let _client = gateway.sends(format!("{head}\r\n0\r\n{CLAIMS}X-Sum: 1\r\n\r\n"));
    assert_eq!(calls.next().request.trailers, [("X-Sum".to_owned(), "1".to_owned())]);
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
