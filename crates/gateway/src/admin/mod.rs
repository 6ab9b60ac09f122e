//! The admin listener: `/livez`, `/readyz`, `/metrics`, `/v1/status`.
//!
//! On a thread of its own, so that it answers while every worker is busy, and never shed. It is
//! on loopback (the configuration sees to that) and answers only requests whose `Host` is
//! loopback as well: a page in an operator's browser that has pointed a name of its own at
//! 127.0.0.1 gets nothing.

mod status;

use std::convert::Infallible;
use std::net::{IpAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::LocalSet;

use crate::request::{Answer, full};
use crate::shared::{Life, Shared};

/// Operators and scrapers, not crowds.
const MOST_CONNECTIONS: usize = 64;
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// Serves until told to stop.
pub(crate) fn run(
    shared: Arc<Shared>,
    listener: StdListener,
    life: watch::Receiver<Life>,
    ready: SyncSender<()>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(shared, listener, life, ready))
}

async fn serve(
    shared: Arc<Shared>,
    listener: StdListener,
    mut life: watch::Receiver<Life>,
    ready: SyncSender<()>,
) -> std::io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    // Whoever waits for this is still there: it has started this thread.
    let _ = ready.send(());
    let seats = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = life.wait_for(|life| *life == Life::Ends) => return Ok(()),
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(HEAD_LIMIT / 100).await;
            continue;
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else { continue };
        let shared = Arc::clone(&shared);
        tokio::task::spawn_local(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let response = respond(&shared, &request);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(16 * 1024);
            // A client that breaks off concerns nobody else.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(seat);
        });
    }
}

fn respond<B>(shared: &Shared, request: &Request<B>) -> Response<Answer> {
    if !host_is_loopback(request.headers().get(header::HOST)) {
        return plain(StatusCode::FORBIDDEN, "ask for this listener by its loopback address\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    }
    match request.uri().path() {
        "/livez" | "/healthz" => plain(StatusCode::OK, "ok\n"),
        "/readyz" if shared.is_ready() => plain(StatusCode::OK, "ready\n"),
        "/readyz" if shared.is_draining() => plain(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        "/readyz" => plain(StatusCode::SERVICE_UNAVAILABLE, "a worker has failed\n"),
        "/metrics" => metrics(shared),
        "/v1/status" => json(&status::status(shared)),
        _ => plain(StatusCode::NOT_FOUND, "there are /livez, /readyz, /metrics and /v1/status\n"),
    }
}

fn host_is_loopback(host: Option<&HeaderValue>) -> bool {
    let Some(host) = host.and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn metrics(shared: &Shared) -> Response<Answer> {
    status::read_gauges(shared);
    match shared.metrics.text() {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            answer(StatusCode::OK, kind, text)
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n"),
    }
}

fn json(value: &serde_json::Value) -> Response<Answer> {
    answer(StatusCode::OK, "application/json", value.to_string())
}

fn plain(status: StatusCode, words: &'static str) -> Response<Answer> {
    answer(status, "text/plain; charset=utf-8", words.to_owned())
}

fn answer(status: StatusCode, kind: &'static str, words: String) -> Response<Answer> {
    let builder = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    full(builder, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_hosts_are_answered() {
        let check = |host: &'static str| host_is_loopback(Some(&HeaderValue::from_static(host)));
        for host in ["127.0.0.1", "127.0.0.1:7070", "localhost:7070", "[::1]:7070", "127.8.8.8"] {
            assert!(check(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:7070", "", "[::2]"] {
            assert!(!check(host), "{host}");
        }
        assert!(!host_is_loopback(None));
    }
}
