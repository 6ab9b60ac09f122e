//! Tests of plain requests, in sequence and in parallel.

use crate::setup::{Setup, eventually, get, post};
use crate::upstream::{Upstream, ok, with_fields};
use crate::wire::Message;

/// An upstream that responds with the body of the request.
fn mirror() -> Upstream {
    Upstream::app(|request| ok(&request.text()))
}

#[test]
fn a_get_comes_back_with_its_answer() {
    let upstream = Upstream::app(|request| with_fields("X-Shop: yes\r\n", request.target()));
    let gateway = Setup::before(&upstream).start();
    let answer = gateway.get("/p/1?size=xl&q=a+b");
    assert_eq!(answer.start, "HTTP/1.1 200 OK");
    assert_eq!(answer.field("x-shop"), Some("yes"));
    assert_eq!(answer.text(), "/p/1?size=xl&q=a+b");
    gateway.is_idle_again();
    assert_eq!(gateway.outcome("served"), 1);
}

#[test]
fn a_post_with_a_length_arrives_whole() {
    let upstream = mirror();
    let gateway = Setup::before(&upstream).start();
    let answer = gateway.sends(post("/form", "name=value")).answer().unwrap();
    assert_eq!(answer.text(), "name=value");
}

#[test]
fn a_chunked_post_arrives_whole() {
    let upstream = mirror();
    let gateway = Setup::before(&upstream).start();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = gateway.sends(head);
    for part in ["4\r\nwiki\r\n", "5;ext=1\r\npedia\r\n", "0\r\n\r\n"] {
        client.send(part);
    }
    assert_eq!(client.answer().unwrap().text(), "wikipedia");
}

#[test]
fn an_empty_chunked_post_is_a_post_with_an_empty_body() {
    let upstream = mirror();
    let gateway = Setup::before(&upstream).start();
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(gateway.sends(request).answer().unwrap().text(), "");
}

#[test]
fn a_chunked_body_of_a_get_is_not_lost() {
    let upstream = mirror();
    let gateway = Setup::before(&upstream).start();
    let request = "GET /search HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(gateway.sends(request).answer().unwrap().text(), "abc");
}

#[test]
fn the_body_of_a_get_with_a_length_is_not_lost() {
    let upstream = mirror();
    let gateway = Setup::before(&upstream).start();
    let request = post("/search", "abc").replace("POST", "GET");
    assert_eq!(gateway.sends(request).answer().unwrap().text(), "abc");
}

#[test]
fn the_answer_to_head_keeps_its_length_and_has_no_body() {
    let upstream = Upstream::app(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n".to_vec());
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send(get("/").replace("GET", "HEAD"));
        let answer = client.answer_to_head().unwrap();
        assert_eq!(answer.field("content-length"), Some("12345"));
    }
}

#[test]
fn the_answer_to_head_of_a_chunked_page_claims_no_length() {
    let upstream =
        Upstream::app(|_| b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec());
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send(get("/").replace("GET", "HEAD"));
        let answer = client.answer_to_head().unwrap();
        assert_eq!(answer.field("content-length"), None);
    }
}

#[test]
fn answers_without_a_body_leave_the_connection_in_step() {
    let upstream = Upstream::app(|request| match request.target() {
        "/204" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        "/304" => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 99\r\n\r\n".into(),
        other => ok(other),
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for (target, status) in [("/204", 204), ("/304", 304), ("/a", 200), ("/304", 304), ("/b", 200)]
    {
        client.send(get(target));
        assert_eq!(client.answer().unwrap().status(), Some(status), "{target}");
    }
    // After a response that announces a body but must not have one, the connection is not used
    // again: the upstream may send the body nevertheless.
    assert_eq!(upstream.accepted(), 3);
}

#[test]
fn connections_are_kept_on_both_sides() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for number in 0..20 {
        client.send(get(&format!("/{number}")));
        assert_eq!(client.answer().unwrap().text(), format!("/{number}"));
    }
    assert_eq!(upstream.accepted(), 1);
    assert_eq!(gateway.count("connections"), 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let requests: String = (0..10)
        .map(|n| if n % 3 == 0 { post(&format!("/{n}"), "body") } else { get(&format!("/{n}")) })
        .collect();
    let mut client = gateway.sends(requests);
    for number in 0..10 {
        assert_eq!(client.answer().unwrap().text(), format!("/{number}"));
    }
}

#[test]
fn a_request_that_comes_byte_by_byte_is_understood() {
    let upstream = mirror();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for byte in post("/slow", "abc").bytes() {
        client.send([byte]);
    }
    assert_eq!(client.answer().unwrap().text(), "abc");
}

#[test]
fn an_http_1_0_client_gets_its_answer_and_the_end_of_the_connection() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends("GET /old HTTP/1.0\r\n\r\n");
    assert_eq!(client.answer().unwrap().text(), "/old");
    assert!(client.is_closed());
    let received = upstream.received().to_lowercase();
    assert!(received.starts_with("get /old http/1.1\r\n"), "{received}");
    let host = format!("\r\nhost: {}\r\n", upstream.address);
    assert!(received.contains(&host), "{received}");
}

#[test]
fn an_http_1_0_client_may_keep_its_connection() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.answer().unwrap().text(), "/old");
    }
}

#[test]
fn an_http_1_0_client_never_gets_chunks() {
    let upstream = Upstream::app(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec()
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let answer = client.answer().unwrap();
    assert_eq!((answer.field("transfer-encoding"), answer.text().as_str()), (None, "abc"));
}

#[test]
fn a_client_that_asks_for_the_end_of_its_connection_gets_it() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut client =
        gateway.sends("GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /never");
    let answer = client.answer().unwrap();
    assert_eq!((answer.text().as_str(), answer.field("connection")), ("/last", Some("close")));
    assert!(client.is_closed());
    // The upstream connection does not depend on the client connection.
    assert_eq!(gateway.get("/other").text(), "/other");
    assert_eq!(upstream.accepted(), 1);
}

#[test]
fn trailers_of_a_request_harm_nothing() {
    let upstream = mirror();
    let gateway = Setup::before(&upstream).start();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    let mut client = gateway.sends(format!("{head}3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"));
    assert_eq!(client.answer().unwrap().text(), "abc");
    client.send(get("/next"));
    assert_eq!(client.answer().unwrap().status(), Some(200));
}

#[test]
fn trailers_cannot_bring_fields_in_by_the_back_door() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
                Trailer: Host, Bywash-Class, Content-Length\r\n\r\n";
    let end = "0\r\nHost: evil\r\nBywash-Class: gold\r\nContent-Length: 3\r\n\r\n";
    let mut client = gateway.sends(format!("{head}3\r\nabc\r\n{end}"));
    let call = calls.next();
    let forbidden = |(name, _): &(String, String)| {
        ["host", "bywash-class", "content-length"].contains(&name.to_lowercase().as_str())
    };
    assert!(!call.request.trailers.iter().any(forbidden), "{:?}", call.request.trailers);
    call.answer("");
    client.answer().unwrap();
}

#[test]
fn trailers_of_an_answer_harm_nothing() {
    let upstream = Upstream::app(|request| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
        format!("{head}1\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n", &request.target()[1..]).into_bytes()
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for target in ["/a", "/b"] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n"));
        assert_eq!(client.answer().unwrap().text(), target[1..]);
    }
    assert_eq!(upstream.accepted(), 1);
}

#[test]
fn the_line_of_an_old_upstream_becomes_ours() {
    let upstream =
        Upstream::blurts("HTTP/1.0 200 Fine\r\nContent-Length: 3\r\nServer: old\r\n\r\nabc");
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send(get("/"));
        let answer = client.answer().unwrap();
        assert_eq!((answer.start.as_str(), answer.text().as_str()), ("HTTP/1.1 200 Fine", "abc"));
    }
}

#[test]
fn a_body_that_ends_with_the_upstreams_connection_is_passed_on_whole() {
    let upstream = Upstream::blurts("HTTP/1.0 200 OK\r\n\r\nabc");
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send(get("/"));
        assert_eq!(client.answer().unwrap().text(), "abc");
    }
    gateway.is_idle_again();
}

#[test]
fn the_upstream_may_have_a_name() {
    let upstream = Upstream::echo();
    let server = format!("'http://localhost:{}'", upstream.address.port());
    let gateway = Setup::before(&upstream).set("upstream.server", &server).start();
    assert_eq!(gateway.get("/").text(), "/");
}

#[test]
fn many_clients_at_once_get_each_their_own_answer() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).limit(4).set("listen.workers", "2").start();
    std::thread::scope(|scope| {
        for number in 0..20 {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut client = gateway.client();
                for round in 0..10 {
                    let target = format!("/{number}/{round}");
                    client.send(get(&target));
                    assert_eq!(client.answer().as_ref().map(Message::text), Ok(target));
                }
            });
        }
    });
    gateway.is_idle_again();
    eventually("every request is counted", || gateway.outcome("served") == 200);
    // Each worker keeps its own connections, but never more than run at once.
    assert!(upstream.accepted() <= 8 + 4, "{}", upstream.accepted());
}
