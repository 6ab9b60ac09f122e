//! Tests of servers of the application that use HTTP/2 in clear text.

mod frames;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::http2::{Http2, request, runtime, wait};
use crate::setup::{Running, Setup, eventually, get, post};
use crate::wire::Wire;

/// A server whose answers depend on the path of the request.
pub(crate) struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The number of requests that have arrived and are never answered.
    asked: AtomicUsize,
    /// The number of streams that were reset before their answer.
    reset: AtomicUsize,
    /// Notified when an answer must break off.
    breaks: Notify,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = wait("a listener", TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let this = Self { address, accepted: Arc::default(), state: Arc::default() };
        let (accepted, state) = (Arc::clone(&this.accepted), Arc::clone(&this.state));
        runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(answer(request, respond, Arc::clone(&state)));
                    }
                });
            }
        });
        this
    }

    /// Returns the number of connections that the server has accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn gateway(&self) -> Setup {
        Setup::before_address(self.address)
            .servers(&[format!("h2c://{}", self.address)])
            .set("upstream.idle_timeout", "'2s'")
    }
}

/// Reads the whole request, then answers by its path.
async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, state: Arc<State>) {
    let (parts, mut body) = request.into_parts();
    let mut received = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        received.extend_from_slice(&data);
    }
    let trailers = body.trailers().await.ok().flatten();
    let response = Response::new(());
    let send = |data: &str| Bytes::from(data.to_owned());
    match parts.uri.path() {
        "/seen" => {
            let host = parts.uri.authority().map(ToString::to_string).unwrap_or_default();
            let te = parts.headers.get("te").map(|te| te.to_str().unwrap().to_owned());
            let words = format!("{} {host} {te:?} {}", parts.method, received.len());
            respond.send_response(response, false).unwrap().send_data(send(&words), true).unwrap();
        }
        "/left" => {
            let left = |name| parts.headers.get(name).map(|text| text.to_str().unwrap().to_owned());
            let words = format!("{:?} {:?}", left("bywash-deadline"), left("grpc-timeout"));
            respond.send_response(response, false).unwrap().send_data(send(&words), true).unwrap();
        }
        "/pieces" => {
            let mut stream = respond.send_response(response, false).unwrap();
            for piece in ["one", "", "two"] {
                stream.send_data(send(piece), false).unwrap();
            }
            stream.send_data(Bytes::new(), true).unwrap();
        }
        "/trailers" => {
            let mut stream = respond.send_response(response, false).unwrap();
            stream.send_data(send("body"), false).unwrap();
            let mut fields = HeaderMap::new();
            let sum = trailers.and_then(|all| all.get("x-sum").cloned());
            fields.insert("x-sum", sum.unwrap_or_else(|| "none".parse().unwrap()));
            stream.send_trailers(fields).unwrap();
        }
        "/breaks" => {
            let mut stream = respond.send_response(response, false).unwrap();
            stream.send_data(send("half"), false).unwrap();
            // A reset would overtake data that has not been sent yet.
            state.breaks.notified().await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
        "/refuses" => respond.send_reset(Reason::INTERNAL_ERROR),
        _ => {
            // The request is never answered.
            state.asked.fetch_add(1, Ordering::SeqCst);
            let _ = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
            state.reset.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn next(gateway: &Running, client: &mut Wire) {
    client.send(get("/seen"));
    assert_eq!(client.answer().unwrap().text(), "GET shop.example None 0");
    gateway.is_idle_again();
}

#[test]
fn requests_of_http_1_go_there() {
    let server = Server::start();
    let gateway = server.gateway().start();
    let mut client = gateway.client();
    next(&gateway, &mut client);
    client.send(post("/seen", "12345"));
    assert_eq!(client.answer().unwrap().text(), "POST shop.example None 5");
    let chunked = "POST /seen HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send(format!("{chunked}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
    assert_eq!(client.answer().unwrap().text(), "POST a None 5");
    client.send(post("/seen", &"x".repeat(1_000_000)));
    assert_eq!(client.answer().unwrap().text(), "POST shop.example None 1000000");
    assert_eq!(server.accepted.load(Ordering::SeqCst), 1);
}

#[test]
fn a_server_is_told_what_is_left() {
    let server = Server::start();
    let gateway = server.gateway().set("class.a.total_timeout", "'9s'");
    let gateway = gateway.set("class.a.match", "['GET /left']").start();
    let left = |fields: &str| {
        let head = format!("GET /left HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        gateway.sends(head).answer().unwrap().text()
    };
    let plain = left("bywash-deadline: 99999\r\n");
    assert!(plain.starts_with("Some(\"8") && plain.ends_with("\") None"), "{plain}");
    let call = left("content-type: application/grpc\r\ngrpc-timeout: 1H\r\n");
    assert!(call.starts_with("Some(\"8") && call.contains("Some(\"8"), "{call}");
    assert!(call.ends_with("u\")"), "{call}");
}

#[test]
fn requests_of_http_2_go_there_side_by_side() {
    let server = Server::start();
    let gateway = server.gateway().start();
    let mut client = Http2::connect(gateway.gateway().http());
    let asked: Vec<_> = (0..20).map(|_| client.asks("/seen")).collect();
    for asked in asked {
        assert_eq!(asked.answer().unwrap().text(), "GET shop.example None 0");
    }
    gateway.is_idle_again();
}

/// An empty piece must not become an empty chunk, which would end the body in HTTP/1.
#[test]
fn empty_pieces_of_an_answer_do_not_end_it() {
    let server = Server::start();
    let gateway = server.gateway().start();
    let mut client = gateway.asks("/pieces");
    assert_eq!(client.answer().unwrap().text(), "onetwo");
    next(&gateway, &mut client);
}

#[test]
fn trailers_go_both_ways() {
    let server = Server::start();
    let gateway = server.gateway().start();
    let mut client = Http2::connect(gateway.gateway().http());
    let mut asked = client.sends(request("POST", "/trailers", &[("te", "trailers")]), false);
    asked.data("question", false);
    asked.trailers(&[("x-sum", "42")]);
    let answer = asked.answer().unwrap();
    assert_eq!(answer.text(), "body");
    assert_eq!(answer.trailers.unwrap()["x-sum"], "42");
}

#[test]
fn an_answer_that_breaks_off_breaks_off() {
    let server = Server::start();
    let gateway = server.gateway().limit(1).start();
    let mut broken = gateway.asks("/breaks");
    broken.head().unwrap();
    assert_eq!(broken.bytes(9).unwrap(), b"4\r\nhalf\r\n");
    server.state.breaks.notify_one();
    assert_eq!(broken.rest(), b"");
    assert_eq!(gateway.get("/refuses").status(), Some(502));
    gateway.is_idle_again();
    assert_eq!(gateway.outcome("upstream_error"), 2);
    // The connection to the server is not affected.
    next(&gateway, &mut gateway.client());
    assert_eq!(server.accepted.load(Ordering::SeqCst), 1);
}

#[test]
fn a_client_that_leaves_resets_its_stream_there() {
    let server = Server::start();
    let gateway = server.gateway().limit(1).start();
    for count in 1..=3 {
        let client = gateway.asks("/never");
        // The server must have the request first; otherwise there may be no stream to reset yet.
        eventually("the server is asked", || server.state.asked.load(Ordering::SeqCst) == count);
        drop(client);
        gateway.is_idle_again();
        eventually("the server sees it", || server.state.reset.load(Ordering::SeqCst) == count);
    }
    next(&gateway, &mut gateway.client());
    assert_eq!(server.accepted.load(Ordering::SeqCst), 1);
}

#[test]
fn the_slot_of_a_stream_is_held_where_departures_go_unnoticed() {
    let server = Server::start();
    let gateway = server.gateway().limit(1).set("upstream.departures", "'unnoticed'");
    let gateway = gateway.set("upstream.response_timeout", "'4s'").start();
    let client = gateway.asks("/never");
    eventually("the server is asked", || server.state.asked.load(Ordering::SeqCst) == 1);
    drop(client);
    gateway.waits_for("departed", 1);
    assert_eq!(server.state.reset.load(Ordering::SeqCst), 0);
    gateway.is_idle_again();
    eventually("the server sees it", || server.state.reset.load(Ordering::SeqCst) == 1);
    assert_eq!(server.accepted.load(Ordering::SeqCst), 1);
}

#[test]
fn an_answer_that_does_not_come_is_given_up() {
    let server = Server::start();
    let gateway = server.gateway().set("upstream.response_timeout", "'100ms'").start();
    assert_eq!(gateway.get("/never").status(), Some(504));
    eventually("the server sees it", || server.state.reset.load(Ordering::SeqCst) == 1);
}

#[test]
fn a_websocket_cannot_go_there() {
    let server = Server::start();
    let gateway = server.gateway().start();
    let asks =
        get("/seen").replace("\r\n\r\n", "\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    let mut client = gateway.sends(asks);
    // The gateway drops the upgrade, so this is a request like any other, with an ordinary answer.
    assert_eq!(client.answer().unwrap().text(), "GET shop.example None 0");
    next(&gateway, &mut client);
}

/// The query has characters that HTTP/1 accepts and the URI type of the `http` crate rejects.
#[test]
fn a_query_that_no_uri_may_hold_goes_there_all_the_same() {
    let server = Server::start();
    let gateway = server.gateway().start();
    let mut client = gateway.client();
    for _ in 0..6 {
        for query in ["q=\"x\"", "q=<b>", "q={\"a\":[1]}|^`"] {
            client.send(get(&format!("/seen?{query}")));
            assert_eq!(client.answer().unwrap().text(), "GET shop.example None 0");
        }
    }
    gateway.is_idle_again();
    assert_eq!(gateway.status()["servers"][0]["response_failures"], 0);
}

#[test]
fn a_host_that_cannot_be_said_is_the_clients_fault() {
    let server = Server::start();
    let other = Server::start();
    let servers = [&server, &other].map(|server| format!("h2c://{}", server.address));
    let gateway = server.gateway().servers(&servers).start();
    for _ in 0..6 {
        for host in ["", "a%41b", "[::1:2:3:4:5:6:7:8:9:a]"] {
            let mut client = gateway.sends(format!("GET /seen HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(client.answer().unwrap().status(), Some(400), "{host}");
        }
    }
    gateway.is_idle_again();
    for server in gateway.status()["servers"].as_array().unwrap() {
        assert_eq!((&server["response_failures"], &server["state"]), (&0.into(), &"up".into()));
    }
}
