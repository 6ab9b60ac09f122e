//! Tests of the trace context of forwarded requests, and of the spans that a collector receives.

use crate::setup::{Setup, get};
use crate::upstream::Upstream;
use crate::wire::Message;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn valid() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

/// Returns the request that the upstream receives when a client sends these fields.
fn forwarded(how: impl Fn(Setup) -> Setup, fields: &str) -> Message {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = how(Setup::before(&upstream)).start();
    let _client = gateway.sends(get("/").replace("\r\n\r\n", &format!("\r\n{fields}\r\n")));
    calls.next().request
}

fn without_traces(fields: &str) -> Message {
    forwarded(|setup| setup, fields)
}

/// Returns values of `traceparent` that are invalid.
fn invalid() -> Vec<String> {
    let line = |value: &str| format!("traceparent: {value}\r\n");
    vec![
        line(""),
        line("1"),
        line(&valid()[..54]),
        line(&format!("{}-more", valid())),
        line(&valid().to_uppercase()),
        line(&valid().replacen("00-", "ff-", 1)),
        line(&valid().replace(TRACE, &"0".repeat(32))),
        line(&valid().replace(PARENT, &"0".repeat(16))),
        line(&valid()).repeat(2),
    ]
}

#[test]
fn a_trace_goes_on_as_it_came_if_the_gateway_has_no_part_in_it() {
    let fields = format!("Traceparent: {}\r\ntracestate: a=1\r\nTraceState: b=2\r\n", valid());
    let request = without_traces(&fields);
    assert_eq!(request.all("traceparent"), [valid()]);
    assert_eq!(request.all("tracestate"), ["a=1", "b=2"]);
}

#[test]
fn a_trace_of_a_later_version_goes_on_as_it_came() {
    let later = valid().replacen("00-", "01-", 1) + "-more";
    let request = without_traces(&format!("traceparent: {later}\r\n"));
    assert_eq!(request.all("traceparent"), [later]);
}

#[test]
fn what_is_no_trace_ends_here() {
    for wrong in invalid() {
        let request = without_traces(&format!("{wrong}tracestate: a=1\r\nX-End: 1\r\n"));
        assert_eq!(request.field("traceparent"), None, "{wrong}");
        assert_eq!(request.field("tracestate"), None, "{wrong}");
        assert_eq!(request.field("x-end"), Some("1"));
    }
}

#[test]
fn the_state_of_no_trace_ends_here() {
    assert_eq!(without_traces("tracestate: a=1\r\n").field("tracestate"), None);
}

#[test]
fn nothing_is_made_up_without_traces() {
    assert_eq!(without_traces("").field("traceparent"), None);
}

#[cfg(not(feature = "traces"))]
#[test]
fn a_build_that_cannot_send_traces_takes_no_part_in_them() {
    const { assert!(!bywash_gateway::EXPORTS_TRACES) };
    let on = |setup: Setup| setup.set("log.traces", "'http://127.0.0.1:4318'");
    assert_eq!(forwarded(on, "").field("traceparent"), None);
    let request = forwarded(on, &format!("traceparent: {}\r\n", valid()));
    assert_eq!(request.all("traceparent"), [valid()]);
}

#[cfg(feature = "traces")]
mod exported {
    use super::*;
    use crate::setup::{Running, eventually};
    use crate::upstream::{Calls, nobody, ok};

    /// Starts a gateway that sends spans to a collector that the test plays.
    fn collected(upstream: &Upstream) -> (Running, Upstream, Calls) {
        let (collector, calls) = Upstream::by_hand();
        let gateway = to(upstream, collector.address).start();
        (gateway, collector, calls)
    }

    fn to(upstream: &Upstream, collector: std::net::SocketAddr) -> Setup {
        Setup::before(upstream).set("log.traces", &format!("'http://{collector}'"))
    }

    /// Starts an upstream that responds with the `traceparent` that it has received.
    fn telling() -> Upstream {
        Upstream::app(|request| ok(&request.all("traceparent").join(",")))
    }

    /// Returns the trace, the parent and the flags from the body of a response.
    fn parts(answer: &Message) -> (String, String, String) {
        let text = answer.text();
        let parts: Vec<&str> = text.split('-').collect();
        let [version, trace, parent, flags] = parts[..] else { panic!("{text:?}") };
        assert_eq!((version, trace.len(), parent.len()), ("00", 32, 16));
        (trace.into(), parent.into(), flags.into())
    }

    fn holds(body: &[u8], bytes: &[u8]) -> bool {
        body.windows(bytes.len()).any(|window| window == bytes)
    }

    /// Encodes a length-delimited field of a protobuf message.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    /// Encodes an attribute as in OTLP: a `KeyValue` with an `AnyValue`.
    fn attribute(key: &str, value: &[u8]) -> Vec<u8> {
        [field(1, key.as_bytes()), field(2, value)].concat()
    }

    fn text(key: &str, value: &str) -> Vec<u8> {
        attribute(key, &field(1, value.as_bytes()))
    }

    fn bytes(digits: &str) -> Vec<u8> {
        let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(pair).collect()
    }

    #[test]
    fn a_collector_is_told_of_a_request_in_one_message() {
        let upstream = telling();
        let (gateway, _collector, calls) = collected(&upstream);
        let answer = gateway
            .sends(format!(
                "GET /p?secret=1 HTTP/1.1\r\nHost: a\r\ntraceparent: {}\r\n\r\n",
                valid()
            ))
            .answer()
            .unwrap();
        let (trace, span, flags) = parts(&answer);
        assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
        assert_ne!(span, PARENT);
        let call = calls.next();
        assert_eq!(call.request.start, "POST /v1/traces HTTP/1.1");
        assert_eq!(call.request.field("content-type"), Some("application/x-protobuf"));
        let body = call.request.body.clone();
        call.answer("");
        for (key, value) in [
            ("service.name", "bywash"),
            ("http.request.method", "GET"),
            ("url.path", "/p"),
            ("client.address", "127.0.0.1"),
            ("network.protocol.version", "1.1"),
            ("bywash.class", "other"),
            ("bywash.mode", "enforce"),
            ("bywash.outcome", "served"),
            ("bywash.decision", "run"),
            ("bywash.reason", "slot_free"),
        ] {
            assert!(holds(&body, &text(key, value)), "{key}");
        }
        assert!(holds(&body, &attribute("http.response.status_code", &[3 << 3, 0xc8, 1])));
        assert!(holds(&body, b"bywash.queue_wait_us"));
        assert!(!holds(&body, b"secret"));
        // These are the ids of the trace, the span and the parent.
        for (number, digits) in [(1, &trace), (2, &span), (4, &PARENT.to_owned())] {
            assert!(holds(&body, &field(number, &bytes(digits))), "{digits}");
        }
        drop(gateway);
        assert!(calls.is_empty());
        assert_eq!(upstream.accepted(), 1);
    }

    #[test]
    fn a_request_without_a_valid_parent_begins_a_trace() {
        let upstream = telling();
        let (gateway, _collector, _calls) = collected(&upstream);
        let mut traces = Vec::new();
        for wrong in invalid().into_iter().chain([String::new(), String::new()]) {
            let answer =
                gateway.sends(get("/").replace("\r\n\r\n", &format!("\r\n{wrong}\r\n"))).answer();
            let (trace, _, flags) = parts(&answer.unwrap());
            assert_eq!(flags, "01", "{wrong}");
            traces.push(trace);
        }
        let count = traces.len();
        assert!(!traces.iter().any(|trace| trace == TRACE || trace.bytes().all(|b| b == b'0')));
        traces.sort_unstable();
        traces.dedup();
        assert_eq!(traces.len(), count);
    }

    #[test]
    fn a_span_is_the_request_that_the_upstream_is_told_of() {
        let upstream = Upstream::app(|request| {
            ok(&[request.field("traceparent"), request.field("bywash-request")]
                .map(Option::unwrap)
                .join(" "))
        });
        let (gateway, _collector, _calls) = collected(&upstream);
        let text = gateway.get("/").text();
        let (parent, name) = text.split_once(' ').unwrap();
        assert_eq!(parent.split('-').nth(2), Some(name));
    }

    #[test]
    fn what_its_parent_does_not_sample_is_not_sent() {
        let upstream = telling();
        let (gateway, _collector, calls) = collected(&upstream);
        let silent = format!("00-{TRACE}-{PARENT}-00");
        let head = format!("\r\ntraceparent: {silent}\r\n\r\n");
        let answer = gateway.sends(get("/not-sampled").replace("\r\n\r\n", &head)).answer();
        assert_eq!(parts(&answer.unwrap()).2, "00");
        gateway.get("/sampled");
        let call = calls.next();
        assert!(holds(&call.request.body, b"/sampled"));
        assert!(!holds(&call.request.body, b"/not-sampled"));
        call.answer("");
    }

    #[test]
    fn a_refused_request_is_a_span_too() {
        let upstream = Upstream::stalled();
        let (collector, calls) = Upstream::by_hand();
        let setup = to(&upstream, collector.address).limit(1).set("queue.max_wait", "'20ms'");
        let gateway = setup.start();
        let _first = gateway.asks("/holds");
        gateway.waits_for("running", 1);
        assert_eq!(gateway.get("/refused").status(), Some(503));
        let call = calls.next();
        let body = &call.request.body;
        assert!(holds(body, &text("bywash.outcome", "expired")), "{}", body.escape_ascii());
        assert!(holds(body, &text("bywash.decision", "shed")));
        assert!(holds(body, &text("error.type", "503")));
        call.answer("");
    }

    #[test]
    fn a_reload_begins_and_ends_traces() {
        let upstream = telling();
        let (collector, calls) = Upstream::by_hand();
        let off = Setup::before(&upstream);
        let gateway = off.start();
        assert_eq!(gateway.get("/").text(), "");
        gateway.reload(&to(&upstream, collector.address)).unwrap();
        eventually("traces are on", || !gateway.get("/").text().is_empty());
        calls.next().answer("");
        gateway.reload(&off).unwrap();
        eventually("traces are off", || gateway.get("/").text().is_empty());
    }

    #[test]
    fn the_last_spans_are_sent_as_the_gateway_ends() {
        let upstream = telling();
        let collector = Upstream::app(|_| ok(""));
        let gateway = to(&upstream, collector.address).start();
        gateway.get("/last");
        drop(gateway);
        assert!(collector.received().contains("/last"));
    }

    #[test]
    fn a_collector_that_refuses_costs_spans_and_no_request() {
        let upstream = telling();
        let refusing =
            Upstream::app(|_| b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno".to_vec());
        let gateway = to(&upstream, refusing.address).start();
        assert_eq!(gateway.get("/").status(), Some(200));
        eventually("it is counted", || gateway.metric("bywash_dropped_spans_total") == 1.0);
    }

    #[test]
    fn more_spans_than_may_wait_are_dropped_and_counted() {
        let upstream = telling();
        let hangs = Upstream::stalled();
        let gateway = to(&upstream, hangs.address).start();
        let mut client = gateway.client();
        let many = 64;
        let batch = get("/").repeat(many);
        // 512 spans are in the message that hangs, and 4,096 wait in the channel.
        for _ in 0..(512 + 4096) / many + 2 {
            client.send(&batch);
            (0..many).for_each(|_| assert_eq!(client.answer().unwrap().status(), Some(200)));
        }
        assert!(gateway.metric("bywash_dropped_spans_total") > 0.0);
    }

    #[test]
    fn nobody_at_the_collectors_address_holds_up_no_start() {
        let upstream = telling();
        let gateway = to(&upstream, nobody()).start();
        assert_eq!(gateway.get("/").status(), Some(200));
    }
}
