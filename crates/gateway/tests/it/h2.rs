//! Tests of clients that use HTTP/2 with prior knowledge.

use bytes::Bytes;
use bywash_units::TimeSpan;
use h2::Reason;

use crate::http2::{
    DATA, END_HEADERS, END_STREAM, Frames, GET, GOAWAY, HEADERS, Http2, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, frame, get, literal, request,
};
use crate::setup::{Running, Setup, eventually};
use crate::upstream::{Calls, Upstream, ok, with_fields};
use crate::wire::Wire;

fn connect(gateway: &Running) -> Http2 {
    Http2::connect(gateway.gateway().http())
}

fn one_slot() -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    (upstream, calls, gateway)
}

/// Returns whether a stream was reset with this reason.
fn is_reset(error: &h2::Error, reason: Reason) -> bool {
    error.is_reset() && error.reason() == Some(reason)
}

#[test]
fn a_get_comes_back_with_its_answer() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let fields = [("X-Twice", "1"), ("x-twice", "2"), ("te", "trailers")];
    let fields =
        fields.map(|(name, value)| (if name == "X-Twice" { "x-twice" } else { name }, value));
    let asked = client.sends(request("GET", "/p/1?size=xl", &fields), true);
    let mut call = calls.next();
    let seen = &call.request;
    assert_eq!(seen.start, "GET /p/1?size=xl HTTP/1.1");
    assert_eq!(seen.all("host"), ["shop.example"]);
    assert_eq!(seen.all("x-twice"), ["1", "2"]);
    assert_eq!(seen.all("via"), ["2.0 bywash"]);
    assert_eq!(seen.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.all("content-length").len() + seen.all("transfer-encoding").len(), 0);
    call.send(with_fields(
        "X-Shop: yes\r\nKeep-Alive: timeout=5\r\nConnection: x-hop\r\nX-Hop: 1\r\n",
        "hello",
    ));
    let answer = asked.answer().unwrap();
    assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, "hello"));
    assert_eq!((answer.field("x-shop"), answer.field("content-length")), (Some("yes"), Some("5")));
    for name in ["keep-alive", "connection", "x-hop", "transfer-encoding"] {
        assert_eq!(answer.field(name), None);
    }
    gateway.is_idle_again();
    assert_eq!(gateway.outcome("served"), 1);
}

#[test]
fn cookies_in_crumbs_become_one_field() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let crumbs = [("cookie", "a=1"), ("cookie", "sid=2"), ("cookie", "b=3")];
    let _asked = client.sends(request("GET", "/", &crumbs), true);
    assert_eq!(calls.next().request.all("cookie"), ["a=1; sid=2; b=3"]);
}

#[test]
fn a_post_with_a_length_arrives_whole() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let mut asked = client.sends(request("POST", "/form", &[("content-length", "10")]), false);
    asked.data("name=", false);
    asked.data("value", true);
    let call = calls.next();
    assert_eq!(call.request.all("content-length"), ["10"]);
    assert_eq!(call.request.text(), "name=value");
    call.answer("thanks");
    assert_eq!(asked.answer().unwrap().text(), "thanks");
}

#[test]
fn a_post_without_a_length_arrives_whole_and_in_chunks() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let mut asked = client.sends(request("POST", "/form", &[]), false);
    asked.data("name=", false);
    asked.data("value", false);
    asked.data("", true);
    let call = calls.next();
    assert_eq!(call.request.all("transfer-encoding"), ["chunked"]);
    assert_eq!(call.request.text(), "name=value");
    call.answer("thanks");
    assert_eq!(asked.answer().unwrap().text(), "thanks");
}

/// An empty chunk ends the body in HTTP/1, so the bytes after it would be another request.
#[test]
fn an_empty_piece_in_the_middle_of_a_body_does_not_end_it() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = Frames::connect(gateway.gateway().http());
    let mut head = GET;
    head[0].1 = "POST";
    client.send(HEADERS, END_HEADERS, 1, &literal(&head));
    let inner = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(DATA, 0, 1, b"name=");
    client.send(DATA, 0, 1, b"");
    client.send(DATA, END_STREAM, 1, inner.as_bytes());
    let call = calls.next();
    assert_eq!(call.request.text(), format!("name={inner}"));
    call.answer("thanks");
    eventually("it is served", || gateway.outcome("served") == 1);
    assert!(calls.is_empty(), "{}", upstream.received());
}

#[test]
fn large_bodies_arrive_whole() {
    let upstream = Upstream::app(|request| ok(&request.text()));
    let gateway = Setup::before(&upstream).start();
    let mut client = connect(&gateway);
    let body = "0123456789".repeat(100_000);
    for _ in 0..3 {
        let mut asked = client.sends(request("POST", "/", &[]), false);
        asked.data(Bytes::from(body.clone()), true);
        assert!(asked.answer().unwrap().text() == body);
    }
}

#[test]
fn an_answer_to_head_keeps_its_length_and_has_no_body() {
    let upstream = Upstream::app(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n".to_vec());
    let gateway = Setup::before(&upstream).start();
    let mut client = connect(&gateway);
    for _ in 0..2 {
        let answer = client.sends(request("HEAD", "/", &[]), true).answer().unwrap();
        assert_eq!((answer.field("content-length"), answer.body.len()), (Some("12345"), 0));
    }
}

#[test]
fn requests_of_one_connection_run_side_by_side() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(8).start();
    let mut client = connect(&gateway);
    let asked: Vec<_> = (0..8).map(|number| client.asks(&format!("/{number}"))).collect();
    let mut at_once: Vec<_> = (0..8).map(|_| calls.next()).collect();
    assert_eq!((gateway.count("connections"), gateway.count("running")), (1, 8));
    // The requests are answered in reverse order.
    while let Some(call) = at_once.pop() {
        let target = call.target().to_owned();
        call.answer(&target);
    }
    for (number, asked) in asked.into_iter().enumerate() {
        assert_eq!(asked.answer().unwrap().text(), format!("/{number}"));
    }
}

/// Sends a page's many requests in one segment, like a browser.
#[test]
fn requests_that_come_in_one_piece_are_all_looked_at_at_once() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = Frames::connect(gateway.gateway().http());
    let block = literal(&GET);
    let all: Vec<u8> = (0..8)
        .flat_map(|number| frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &block))
        .collect();
    std::io::Write::write_all(&mut client.0, &all).unwrap();
    let _call = calls.next();
    gateway.waits_for("waiting", 7);
}

#[test]
fn those_of_one_connection_wait_each_for_a_slot() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let asked: Vec<_> = (0..3).map(|number| client.asks(&format!("/{number}"))).collect();
    let first = calls.next();
    gateway.waits_for("waiting", 2);
    assert!(calls.is_empty());
    first.answer("");
    calls.next().answer("");
    calls.next().answer("");
    for asked in asked {
        assert_eq!(asked.answer().unwrap().status, 200);
    }
}

#[test]
fn one_too_many_is_refused_and_the_others_go_on() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).set("scheduler.capacity", "1").start();
    let mut client = connect(&gateway);
    let runs = client.asks("/runs");
    let call = calls.next();
    let waits = client.asks("/waits");
    gateway.waits_for("waiting", 1);
    let refused = client.get("/refused");
    assert_eq!(refused.status, 503);
    assert!(refused.field("retry-after").is_some());
    assert!(refused.field("proxy-status").unwrap().contains("queue_full"));
    call.answer("one");
    calls.next().answer("two");
    assert_eq!(runs.answer().unwrap().text(), "one");
    assert_eq!(waits.answer().unwrap().text(), "two");
}

/// Imitates gRPC: metadata, a message, and the status in the trailers of the answer.
#[test]
fn trailers_go_both_ways() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let fields = [("te", "trailers"), ("content-type", "application/grpc")];
    let mut asked = client.sends(request("POST", "/shop.Cart/Add", &fields), false);
    asked.data("question", false);
    asked.trailers(&[("x-checksum", "abc")]);
    let mut call = calls.next();
    assert_eq!(call.request.text(), "question");
    assert_eq!(call.request.field("te"), Some("trailers"));
    let trailers: Vec<_> =
        call.request.trailers.iter().map(|(n, v)| (n.to_lowercase(), v)).collect();
    assert_eq!(trailers, [("x-checksum".to_owned(), &"abc".to_owned())]);
    call.send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTrailer: grpc-status\r\n\
         Transfer-Encoding: chunked\r\n\r\n6\r\nanswer\r\n0\r\nGrpc-Status: 0\r\nGrpc-Message: ok\r\n\r\n",
    );
    let answer = asked.answer().unwrap();
    assert_eq!(answer.text(), "answer");
    let trailers = answer.trailers.unwrap();
    assert_eq!(
        (trailers["grpc-status"].as_bytes(), trailers["grpc-message"].as_bytes()),
        (&b"0"[..], &b"ok"[..])
    );
}

#[test]
fn a_client_that_takes_no_trailers_gets_none() {
    let upstream = Upstream::app(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"
            .to_vec()
    });
    let gateway = Setup::before(&upstream).start();
    let answer = connect(&gateway).get("/");
    assert_eq!((answer.text().as_str(), answer.trailers), ("ok", None));
}

#[test]
fn answers_before_the_answer_are_passed_on() {
    let upstream = Upstream::app(|_| {
        let early =
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
        [early.as_bytes(), &ok("final")].concat()
    });
    let gateway = Setup::before(&upstream).start();
    let mut asked = connect(&gateway).asks("/");
    let (status, fields) = asked.interim().expect("early hints");
    assert_eq!((status.as_u16(), fields["link"].as_bytes()), (103, &b"</a.css>"[..]));
    assert!(asked.interim().is_none());
    assert_eq!(asked.answer().unwrap().text(), "final");
}

#[test]
fn a_reset_in_the_queue_ends_the_request() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let _running = client.asks("/runs");
    let call = calls.next();
    for count in 1..=3 {
        let mut ghost = client.asks("/ghost");
        gateway.waits_for("waiting", 1);
        ghost.reset();
        gateway.waits_for("waiting", 0);
        eventually("it is counted", || gateway.outcome("orphaned") == count);
    }
    let next = client.asks("/next");
    gateway.waits_for("waiting", 1);
    call.answer("");
    let call = calls.next();
    assert_eq!(call.target(), "/next");
    call.answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
}

#[test]
fn a_reset_with_the_upstream_ends_the_request_there() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    for begun in ["", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"] {
        let mut ghost = client.asks("/ghost");
        let mut call = calls.next();
        call.send(begun);
        ghost.reset();
        gateway.is_idle_again();
        eventually("the upstream sees it", || call.is_abandoned());
    }
    eventually("both are counted", || gateway.outcome("orphaned") == 2);
    let next = client.asks("/next");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    assert_eq!(gateway.count("connections"), 1);
}

#[test]
fn a_client_that_leaves_takes_all_its_requests_with_it() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(2).start();
    let mut client = connect(&gateway);
    let _asked: Vec<_> = (0..5).map(|_| client.asks("/ghost")).collect();
    let running = [calls.next(), calls.next()];
    gateway.waits_for("waiting", 3);
    client.leaves();
    gateway.is_idle_again();
    gateway.waits_for("connections", 0);
    for call in running {
        eventually("the upstream sees it", || call.is_abandoned());
    }
    eventually("all are counted", || gateway.outcome("orphaned") == 5);
    assert!(calls.is_empty());
}

#[test]
fn an_answer_that_breaks_off_resets_its_stream_and_no_other() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = connect(&gateway);
    let (broken, other) = (client.asks("/broken"), client.asks("/other"));
    let mut two = [calls.next(), calls.next()];
    two.sort_by(|a, b| a.target().cmp(b.target()));
    let [call, other_call] = two;
    call.send_and_close("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    assert!(is_reset(&broken.answer().unwrap_err(), Reason::INTERNAL_ERROR));
    other_call.answer("fine");
    assert_eq!(other.answer().unwrap().text(), "fine");
}

#[test]
fn one_stream_too_many_is_refused() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).set("client_limits.h2_streams", "2").start();
    // The client sends requests before it knows how many streams it may open.
    let mut client = Frames::connect(gateway.gateway().http());
    let block = literal(&GET);
    for stream in [1, 3, 5] {
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &block);
    }
    let refused = client.next().unwrap();
    assert_eq!((refused.kind, refused.stream), (RST_STREAM, 5));
    assert_eq!(refused.code(), u32::from(Reason::REFUSED_STREAM));
    calls.next().answer("");
    calls.next().answer("");
    eventually("the other two are served", || gateway.outcome("served") == 2);
    assert!(calls.is_empty());
}

#[test]
fn a_client_is_told_how_many_streams_there_may_be() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).set("client_limits.h2_streams", "3").start();
    let mut client = connect(&gateway);
    let first = client.asks("/");
    calls.next().answer("");
    first.answer().unwrap();
    let asked: Vec<_> = (0..5).map(|_| client.sends_at_once(get("/"), true)).collect();
    let three = [calls.next(), calls.next(), calls.next()];
    assert_eq!(gateway.count("running"), 3);
    assert!(calls.is_empty());
    for call in three {
        call.answer("");
    }
    calls.next().answer("");
    calls.next().answer("");
    for asked in asked {
        assert_eq!(asked.answer().unwrap().status, 200);
    }
}

#[test]
fn a_malformed_request_is_answered_and_the_connection_goes_on() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = connect(&gateway);
    let malformed = [
        (request("GET", "/%00", &[]), 400),
        (request("GET", "/", &[("host", "evil.example")]), 400),
        (request("GET", "/", &[("expect", "x")]), 417),
        (request("GET", &format!("/{}", "x".repeat(8192)), &[]), 414),
    ];
    for (request, status) in malformed {
        let shown = format!("{request:?}");
        let answer = client.sends(request, true).answer().unwrap();
        assert_eq!(answer.status.as_u16(), status, "{shown}");
        assert_eq!(answer.field("proxy-status"), Some("bywash; error=http_request_error"));
    }
    assert_eq!(upstream.accepted(), 0);
    let next = client.asks("/next");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
}

#[test]
fn what_would_be_two_messages_in_http_1_is_refused() {
    let cases: [&[(&str, &str)]; 8] = [
        &[("connection", "close")],
        &[("transfer-encoding", "chunked")],
        &[("upgrade", "websocket")],
        &[("keep-alive", "timeout=5")],
        &[("Upper", "case")],
        &[("x", "a\r\nevil: 1")],
        &[("x y", "1")],
        &[("te", "gzip")],
    ];
    for case in cases {
        let upstream = Upstream::echo();
        let gateway = Setup::before(&upstream).start();
        let mut client = Frames::connect(gateway.gateway().http());
        let block = [literal(&GET), literal(case)].concat();
        client.send(HEADERS, END_HEADERS | END_STREAM, 1, &block);
        let answer = client.next().unwrap_or_else(|| panic!("no answer to {case:?}"));
        let refused =
            answer.kind == RST_STREAM || answer.kind == GOAWAY || answer.status() == Some(400);
        assert!(refused, "{case:?}: {answer:?}");
        assert_eq!(upstream.accepted(), 0, "{case:?}");
    }
}

#[test]
fn a_body_that_is_not_as_long_as_it_said_does_not_become_a_request() {
    for (length, body) in [("3", "hello"), ("9", "hello")] {
        let (upstream, _calls) = Upstream::by_hand();
        let gateway = Setup::before(&upstream).limit(1).start();
        let mut client = Frames::connect(gateway.gateway().http());
        let mut head = GET;
        head[0].1 = "POST";
        let block = [literal(&head), literal(&[("content-length", length)])].concat();
        client.send(HEADERS, END_HEADERS, 1, &block);
        client.send(DATA, END_STREAM, 1, body.as_bytes());
        let answer = client.next().unwrap();
        let refused = answer.kind == RST_STREAM || answer.status() == Some(400);
        assert!(refused, "{length}: {answer:?}");
        gateway.is_idle_again();
        eventually("nothing is left there", || upstream.open() == 0);
        assert_eq!(gateway.outcome("upstream_error"), 0);
    }
}

#[test]
fn a_stop_says_goodbye_and_lets_requests_finish() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let (runs, waits) = (client.asks("/runs"), client.asks("/waits"));
    let call = calls.next();
    gateway.waits_for("waiting", 1);
    let gateway = gateway.into_gateway();
    let stopping = std::thread::spawn(move || gateway.stop(TimeSpan::from_secs(20)));
    eventually("no more streams are taken", || client.takes_no_more());
    assert!(!stopping.is_finished());
    call.answer("one");
    assert_eq!(runs.answer().unwrap().text(), "one");
    calls.next().answer("two");
    assert_eq!(waits.answer().unwrap().text(), "two");
    client.ended().expect("a clean end");
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn an_idle_connection_holds_no_stop_up() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = connect(&gateway);
    let asked = client.asks("/");
    calls.next().answer("");
    asked.answer().unwrap();
    assert_eq!(gateway.into_gateway().stop(TimeSpan::from_secs(20)), 0);
    client.ended().expect("a clean end");
}

#[test]
fn http_1_and_http_2_share_a_port_and_a_queue() {
    let (_upstream, calls, gateway) = one_slot();
    let mut old = gateway.asks("/old");
    let call = calls.next();
    let new = connect(&gateway).asks("/new");
    gateway.waits_for("waiting", 1);
    call.answer("old");
    assert_eq!(old.answer().unwrap().text(), "old");
    calls.next().answer("new");
    assert_eq!(new.answer().unwrap().text(), "new");
}

#[test]
fn the_preface_may_come_byte_by_byte() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut client = Wire::connect(gateway.gateway().http());
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
        client.send([*byte]);
    }
    client.send(frame(4, 0, 0, b""));
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &literal(&GET)));
    let mut client = Frames(client.stream);
    let answer = client.next().unwrap();
    assert_eq!((answer.kind, answer.stream, answer.status()), (HEADERS, 1, Some(200)));
}

#[test]
fn where_it_is_switched_off_nobody_speaks_it() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).set("listen.http2", "false").start();
    let mut client = gateway.sends("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(client.answer().unwrap().status(), Some(505));
    assert!(client.is_closed());
}

/// The client sends window updates for data that it has read. If the gateway had closed the
/// connection, they would be answered with a reset, and the client's kernel would discard the data
/// that is not read yet.
#[test]
fn an_answer_is_read_to_its_end_though_the_gateway_stops() {
    const LENGTH: usize = 1024 * 1024;
    let upstream = Upstream::app(|_| ok(&"x".repeat(LENGTH)));
    let gateway = Setup::before(&upstream).start();
    let mut client = Frames::narrow(gateway.gateway().http());
    let window = (1_u32 << 30).to_be_bytes();
    client.send(SETTINGS, 0, 0, &[&[0, 4], &window[..]].concat());
    client.send(WINDOW_UPDATE, 0, 0, &window);
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &literal(&GET));
    let (mut read, mut gateway) = (0, Some(gateway));
    let mut stopping = None;
    while read < LENGTH {
        let frame = client.next().unwrap_or_else(|| panic!("it ends after {read} bytes"));
        if frame.kind == DATA {
            read += frame.payload.len();
            // This sleep makes the client slow.
            std::thread::sleep(std::time::Duration::from_millis(4));
            client.tries(WINDOW_UPDATE, 0, 0, &(frame.payload.len() as u32).to_be_bytes());
        }
        if read > LENGTH / 4
            && let Some(gateway) = gateway.take()
        {
            let gateway = gateway.into_gateway();
            stopping = Some(std::thread::spawn(move || gateway.stop(TimeSpan::from_secs(20))));
        }
    }
    drop(client);
    assert_eq!(stopping.expect("it was stopped").join().unwrap(), 0);
}

#[test]
fn an_idle_client_is_told_before_it_is_ended() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).set("client_limits.idle_timeout", "'1s'").start();
    let mut client = Frames::connect(gateway.gateway().http());
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &literal(&GET));
    assert_eq!(client.next().unwrap().status(), Some(200));
    while let Some(frame) = client.next() {
        if frame.kind == GOAWAY {
            return;
        }
    }
    panic!("it was ended without a word");
}

/// Each side of a long call may send at any time, and both may be silent.
#[test]
#[ignore = "takes 12 s; make test-all"]
fn a_call_may_be_silent_behind_the_beginning_of_its_answer() {
    let upstream = Upstream::script(|mut wire| {
        if wire.head().is_ok() {
            wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
            wire.stream.set_read_timeout(None).unwrap();
            wire.bytes("5\r\nhello\r\n3\r\nbye\r\n0\r\n\r\n".len()).unwrap();
            wire.send("0\r\n\r\n");
        }
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = connect(&gateway);
    let mut asked = client.sends(request("POST", "/call", &[]), false);
    asked.data("hello", false);
    // The sleep is longer than the ten seconds for which a body may pause before the answer begins.
    std::thread::sleep(std::time::Duration::from_secs(12));
    asked.data("bye", true);
    assert_eq!(asked.answer().unwrap().text(), "abc");
}

#[test]
fn who_only_pings_is_idle() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).set("client_limits.idle_timeout", "'1s'").start();
    let mut client = Frames::connect(gateway.gateway().http());
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &literal(&GET));
    assert_eq!(client.next().unwrap().status(), Some(200));
    let pings = frame(PING, 0, 0, &[7; 8]).repeat(20);
    for _ in 0..12 {
        // This sends fewer pings than their budget allows. The answers to them are as long as a
        // small response.
        std::thread::sleep(std::time::Duration::from_millis(900));
        if std::io::Write::write_all(&mut client.0, &pings).is_err() {
            break;
        }
        if gateway.count("connections") == 0 {
            break;
        }
    }
    // The connection is closed while pings still come.
    assert_eq!(gateway.count("connections"), 0);
    assert_eq!(gateway.metric("bywash_http2_floods_total{kind=\"ping\"}"), 0.0);
}
