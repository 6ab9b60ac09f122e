//! Tests of faults of an upstream, and of the answers that clients get.

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::{Upstream, deaf, nobody};
use crate::wire::{Broken, Message, Wire};

/// Checks that the request has failed, is counted once, and has released its slot.
fn has_failed(gateway: &Running, answer: &Message, status: u16, error: &str) {
    assert_eq!(answer.status(), Some(status), "{answer:?}");
    assert_eq!(error_of(answer), format!("bywash; error={error}"));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    gateway.is_idle_again();
    assert_eq!(gateway.outcome("upstream_error"), 1, "{:?}", gateway.outcomes());
}

/// Returns the part of `Proxy-Status` that every client gets, without the details after it.
fn error_of(answer: &Message) -> &str {
    let status = answer.field("proxy-status").unwrap_or_default();
    status.split_once("; details=\"").map_or(status, |(error, _)| error)
}

/// Starts a gateway with one slot before an upstream that answers every request with these bytes
/// and closes.
fn blurting(bytes: impl Into<Vec<u8>>) -> (Upstream, Running) {
    let upstream = Upstream::blurts(bytes);
    let gateway = Setup::before(&upstream).limit(1).start();
    (upstream, gateway)
}

mod before_the_answer {
    use super::*;

    #[test]
    fn nobody_listens() {
        let gateway = Setup::before_address(nobody()).limit(1).start();
        let mut client = gateway.asks("/");
        has_failed(&gateway, &client.answer().unwrap(), 502, "connection_refused");
        // The client's connection is not affected.
        client.send(get("/"));
        assert_eq!(client.answer().unwrap().status(), Some(502));
    }

    #[test]
    fn connecting_hangs() {
        let (address, _kept) = deaf();
        let gateway = Setup::before_address(address)
            .limit(1)
            .set("upstream.connect_timeout", "'100ms'")
            .start();
        has_failed(&gateway, &gateway.get("/"), 504, "connection_timeout");
    }

    #[test]
    fn it_does_not_answer() {
        let (upstream, calls) = Upstream::by_hand();
        let gateway =
            Setup::before(&upstream).limit(1).set("upstream.response_timeout", "'100ms'").start();
        let mut client = gateway.asks("/");
        let call = calls.next();
        has_failed(&gateway, &client.answer().unwrap(), 504, "http_response_timeout");
        eventually("the connection to it is closed", || call.is_abandoned());
        client.send(get("/again"));
        calls.next().answer("now");
        assert_eq!(client.answer().unwrap().text(), "now");
    }

    #[test]
    fn it_stops_in_the_middle_of_the_head() {
        let (upstream, calls) = Upstream::by_hand();
        let gateway =
            Setup::before(&upstream).limit(1).set("upstream.response_timeout", "'100ms'").start();
        let mut client = gateway.asks("/");
        calls.next().send("HTTP/1.1 200 OK\r\nX-");
        has_failed(&gateway, &client.answer().unwrap(), 504, "http_response_timeout");
    }

    #[test]
    fn it_closes_the_connection() {
        let (_upstream, gateway) = blurting("");
        has_failed(&gateway, &gateway.get("/"), 502, "connection_terminated");
    }

    #[test]
    fn it_resets_the_connection() {
        let upstream = Upstream::script(|mut wire| {
            if wire.request().is_ok() {
                wire.reset();
            }
        });
        let gateway = Setup::before(&upstream).limit(1).start();
        has_failed(&gateway, &gateway.get("/"), 502, "connection_terminated");
    }

    #[test]
    fn it_closes_in_the_middle_of_the_head() {
        let (_upstream, gateway) = blurting("HTTP/1.1 200 OK\r\nX-Half");
        has_failed(&gateway, &gateway.get("/"), 502, "connection_terminated");
    }

    #[test]
    fn it_talks_garbage() {
        let garbage = [
            "SSH-2.0-OpenSSH_9.9\r\n\r\n",
            "HTTP/3.0 200 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ];
        for bytes in garbage {
            let (_upstream, gateway) = blurting(bytes);
            has_failed(&gateway, &gateway.get("/"), 502, "http_protocol_error");
        }
    }

    #[test]
    fn its_head_has_no_end() {
        let field = format!("X-Long: {}\r\n", "x".repeat(8000));
        let (_upstream, gateway) =
            blurting(format!("HTTP/1.1 200 OK\r\n{}\r\n", field.repeat(100)));
        has_failed(&gateway, &gateway.get("/"), 502, "http_protocol_error");
    }

    #[test]
    fn its_head_has_too_many_fields() {
        let (_upstream, gateway) =
            blurting(format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(500)));
        has_failed(&gateway, &gateway.get("/"), 502, "http_protocol_error");
    }

    #[test]
    fn it_switches_protocols_unasked() {
        let (_upstream, gateway) = blurting(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        );
        has_failed(&gateway, &gateway.get("/"), 502, "http_protocol_error");
    }
}

mod in_the_middle_of_the_answer {
    use super::*;

    /// Returns whether a client sees a broken-off answer or none, and never a complete one.
    fn broken(answer: &Result<Message, Broken>) -> bool {
        matches!(answer, Err(Broken::Cut | Broken::Closed))
    }

    fn is_broken(bytes: &str, end: fn(Wire)) {
        let bytes = bytes.to_owned();
        let upstream = Upstream::script(move |mut wire| {
            if wire.request().is_ok() {
                wire.send(&bytes);
                end(wire);
            }
        });
        let gateway = Setup::before(&upstream).limit(1).start();
        assert!(broken(&gateway.asks("/").answer()));
        gateway.is_idle_again();
        eventually("it is counted", || gateway.outcome("upstream_error") == 1);
        assert!(broken(&gateway.asks("/").answer()));
    }

    #[test]
    fn what_came_before_the_break_has_reached_the_client() {
        let (upstream, calls) = Upstream::by_hand();
        let gateway = Setup::before(&upstream).limit(1).start();
        for head in
            ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
        {
            let mut client = gateway.asks("/");
            let mut call = calls.next();
            call.send(format!("HTTP/1.1 200 OK\r\n{head}"));
            assert_eq!(client.head().unwrap().status(), Some(200));
            call.close();
            assert!(client.rest().ends_with(if head.starts_with('C') {
                b"half"
            } else {
                b"half\r\n"
            }));
            gateway.is_idle_again();
        }
    }

    #[test]
    fn a_body_with_a_length_is_cut() {
        is_broken("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", drop);
        is_broken("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", drop);
    }

    #[test]
    fn a_body_with_a_length_is_reset() {
        is_broken("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", Wire::reset);
    }

    #[test]
    fn a_chunked_body_is_cut() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for body in ["", "4\r\nha", "4\r\nhalf\r\n", "4\r\nhalf\r\n0\r\n"] {
            is_broken(&format!("{head}{body}"), drop);
        }
    }

    /// An HTTP/1.0 client gets no chunks, so only a reset shows that a part of the answer is
    /// missing.
    #[test]
    fn a_client_without_chunks_sees_a_break_too() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
        let (_upstream, gateway) = blurting(chunked);
        assert!(broken(&gateway.sends("GET / HTTP/1.0\r\n\r\n").answer()));
    }

    #[test]
    fn a_chunk_is_garbage() {
        is_broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", drop);
    }
}

#[test]
fn what_the_application_says_itself_is_passed_on() {
    for status in ["500 Oops", "503 Service Unavailable", "404 Not Found", "418 Tea"] {
        let bytes = format!("HTTP/1.1 {status}\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno");
        let upstream = Upstream::app(move |_| bytes.clone().into_bytes());
        let gateway = Setup::before(&upstream).limit(1).start();
        let answer = gateway.get("/");
        assert_eq!(answer.start, format!("HTTP/1.1 {status}"));
        assert_eq!((answer.field("retry-after"), answer.text().as_str()), (Some("7"), "no"));
        assert_eq!(answer.field("proxy-status"), None);
        gateway.is_idle_again();
        let outcome = if status.starts_with('5') { "upstream_error" } else { "served" };
        assert_eq!(gateway.outcome(outcome), 1, "{status}");
    }
}
