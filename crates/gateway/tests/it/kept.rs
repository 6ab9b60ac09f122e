//! Tests of idle connections to the upstream: which of them are kept, and which are used again.

use std::io::{ErrorKind, Read};
use std::sync::Mutex;

use crate::setup::{Setup, eventually, get, post};
use crate::upstream::{Upstream, ok};
use crate::wire::{BOUND, Message};

/// Starts a server that answers `count` requests on a connection, and closes it without announcing
/// that.
fn closing_after(count: usize) -> Upstream {
    Upstream::script(move |mut wire| {
        for _ in 0..count {
            match wire.request() {
                Ok(request) => wire.send(ok(request.target())),
                Err(_) => return,
            }
        }
    })
}

#[test]
fn one_that_was_closed_while_idle_is_not_used_again() {
    let upstream = closing_after(1);
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for number in 1..=20 {
        client.send(if number % 2 == 0 { get("/") } else { post("/", "abc") });
        // The server closes the connection at once. A request that is on its way at that time may
        // be lost.
        assert_eq!(client.answer().unwrap().status(), Some(200), "request {number}");
        eventually("the upstream has closed", || upstream.open() == 0);
    }
    assert_eq!(upstream.accepted(), 20);
}

#[test]
fn one_that_is_closed_under_a_get_costs_nothing() {
    // The server reads the second request and closes without an answer, as if the request and the
    // server's FIN had crossed on the way.
    let upstream = Upstream::script(|mut wire| {
        if let Ok(request) = wire.request() {
            wire.send(ok(request.target()));
        }
        let _ = wire.request();
    });
    let gateway = Setup::before(&upstream).set("client_limits.header_timeout", "'100ms'").start();
    assert_eq!(gateway.get("/1").text(), "/1");
    // While a silent client is cut off, the upstream connection stays idle.
    assert!(gateway.client().is_closed());
    assert_eq!(gateway.get("/2").text(), "/2");
    assert_eq!(upstream.accepted(), 2);
}

#[test]
fn a_post_is_never_sent_twice_not_even_without_a_body() {
    for body in ["one", ""] {
        let upstream = Upstream::script(|mut wire| {
            if let Ok(request) = wire.request() {
                wire.send(ok(request.target()));
            }
            let _ = wire.request();
        });
        let gateway = Setup::before(&upstream).start();
        assert_eq!(gateway.get("/1").text(), "/1");
        let answer = gateway.sends(post("/order", body)).answer().unwrap();
        assert_eq!(answer.status(), Some(502), "{body:?}");
        assert_eq!(upstream.received().matches("/order").count(), 1, "{body:?}");
        gateway.is_idle_again();
    }
}

#[test]
fn an_upstream_that_closes_after_each_answer_without_a_word_costs_no_get() {
    let upstream = closing_after(1);
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    let mut lost = 0;
    for _ in 0..1000 {
        client.send(get("/"));
        lost += u32::from(client.answer().unwrap().status() != Some(200));
    }
    assert_eq!(lost, 0);
}

#[test]
fn bytes_that_nobody_asked_for_are_no_answer() {
    let upstream = Upstream::script(|mut wire| {
        while let Ok(request) = wire.request() {
            // The server sends two answers to each request.
            wire.send([ok(request.target()), ok("evil")].concat());
        }
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for number in 0..10 {
        let target = format!("/{number}");
        client.send(get(&target));
        assert_eq!(client.answer().unwrap().text(), target);
    }
}

#[test]
fn a_connection_that_the_upstream_wants_closed_is_not_kept() {
    let upstream = Upstream::app(|_| {
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec()
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for _ in 0..3 {
        client.send(get("/"));
        let answer = client.answer().unwrap();
        assert_eq!((answer.field("connection"), answer.text().as_str()), (None, "ok"));
    }
    assert_eq!(upstream.accepted(), 3);
}

#[test]
fn connections_that_have_failed_are_not_kept() {
    let upstream = Upstream::app(|request| match request.target() {
        "/bad" => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n".to_vec(),
        target => ok(target),
    });
    let gateway = Setup::before(&upstream).start();
    for _ in 0..3 {
        assert!(gateway.asks("/bad").answer().is_err());
        assert_eq!(gateway.get("/good").text(), "/good");
    }
}

/// A connection that the gateway closes without a reset leaves one of its ports in `TIME_WAIT` for
/// a minute. A connection that the server asked to close is closed normally.
#[test]
fn one_that_is_not_kept_out_of_doubt_is_reset() {
    let (tell, ends) = std::sync::mpsc::channel();
    let tell = Mutex::new(tell);
    let upstream = Upstream::script(move |mut wire| {
        let Ok(request) = wire.request() else { return };
        let close = if request.target() == "/closes" { "Connection: close\r\n" } else { "" };
        wire.send(format!("HTTP/1.1 200 OK\r\n{close}\r\n"));
        let end = wire.stream.read(&mut [0]);
        let _ = tell.lock().unwrap().send(end.map_err(|error| error.kind()));
    });
    let gateway = Setup::before(&upstream).start();
    for (target, end) in [("/doubtful", Err(ErrorKind::ConnectionReset)), ("/closes", Ok(0))] {
        let mut client = gateway.sends(get(target).replace("GET", "HEAD"));
        assert_eq!(client.answer_to_head().unwrap().status(), Some(200));
        assert_eq!(ends.recv_timeout(BOUND).expect("it ends"), end, "{target}");
    }
}

/// An application that sends a body where there must be none may also send it late. The body would
/// be taken for the next response.
#[test]
fn one_is_not_kept_whose_bodiless_answer_speaks_of_a_body() {
    let answer = |request: &Message| {
        let head = match request.target() {
            "/204" => "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n",
            "/304" => "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n",
            "/head" => "HTTP/1.1 200 OK\r\n",
            "/head-chunked" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
            "/head-length" => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
            _ => "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n",
        };
        format!("{head}\r\n").into_bytes()
    };
    let upstream = Upstream::app(answer);
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for target in ["/204", "/304", "/head", "/head-chunked", "/head-length"] {
        let method = if target.starts_with("/head") { "HEAD" } else { "GET" };
        client.send(get(target).replace("GET", method));
        let answer = client.answer_to_head().unwrap();
        assert!(answer.status().is_some_and(|status| status < 400), "{target}: {answer:?}");
    }
    assert_eq!(upstream.accepted(), 5);
    for _ in 0..3 {
        client.send(get("/plain"));
        assert_eq!(client.answer_to_head().unwrap().status(), Some(204));
    }
    assert_eq!(upstream.accepted(), 6);
}

/// If the method gives a body no meaning, an application may leave the body unread and take it for
/// the next request. So the connection must not carry a request of another client.
#[test]
fn one_whose_request_had_a_body_without_meaning_is_not_used_again() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    let mut asks = |method: &str, body: &str| {
        client.send(post(&format!("/{method}"), body).replacen("POST", method, 1));
        assert_eq!(client.answer().unwrap().status(), Some(200), "{method}");
        upstream.accepted()
    };
    assert_eq!((asks("POST", "abc"), asks("PUT", "abc"), asks("PROPFIND", "abc")), (1, 1, 1));
    assert_eq!((asks("GET", ""), asks("DELETE", "")), (1, 1));
    assert_eq!((asks("GET", "abc"), asks("GET", "")), (1, 2));
    assert_eq!((asks("DELETE", "abc"), asks("POST", "abc")), (2, 3));
}
