//! Tests of responses of axum that go on after their head.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::Message;
use axum::response::Sse;
use axum::response::sse::Event;
use axum::routing::get;
use bywash_tower::{Class, Controller, TerminateLayer};
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::millis;
use crate::site::patiently;

/// The time of a request, and the later time of a message after its head.
const RUN_MAX: u64 = 50;
const LATER: u64 = 200;

/// Starts a server with a stream of events at `/events` and a WebSocket at `/socket`. Each sends
/// one message when its request could not run any longer.
async fn serve() -> (SocketAddr, Controller) {
    let class = Class::new("search", millis(RUN_MAX), millis(RUN_MAX));
    let controller = Controller::new([class]).unwrap();
    let events = async || {
        Sse::new(stream::once(Box::pin(async {
            tokio::time::sleep(millis(LATER)).await;
            Ok::<_, Infallible>(Event::default().data("late"))
        })))
    };
    let socket = async |upgrade: WebSocketUpgrade| {
        upgrade.on_upgrade(async |mut socket| {
            tokio::time::sleep(millis(LATER)).await;
            socket.send(Message::text("late")).await.unwrap();
        })
    };
    let router = Router::new()
        .route("/events", get(events))
        .route("/socket", get(socket))
        .layer(TerminateLayer::new(&controller, "search").unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    (address, controller)
}

/// Checks that the response to a request for `path` begins with `status` and has `message` last.
async fn has(path: &str, fields: &str, status: &str, message: &str) {
    let (address, controller) = serve().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    patiently(stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with(status) && answer.ends_with(message), "{answer:?}");
    assert_eq!(controller.stats()["search"].lost, 0);
}

#[tokio::test]
async fn a_stream_of_events_goes_on_after_the_time_of_its_request() {
    let message = "data: late\n\n\r\n0\r\n\r\n";
    has("/events", "connection: close\r\n", "HTTP/1.1 200 ", message).await;
}

#[tokio::test]
async fn a_websocket_goes_on_after_the_time_of_its_request() {
    let fields = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                  sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    has("/socket", fields, "HTTP/1.1 101 ", "\u{4}late").await;
}
