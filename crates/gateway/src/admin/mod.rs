//! The admin listener: what the gateway is doing, and the few things that can be told to it while
//! it runs.
//!
//! On a thread of its own, so that it answers while every worker is busy, and never shed. It is on
//! a unix socket that only its owner may use, or on loopback (the configuration sees to that).
//! On loopback it answers only requests whose `Host` is loopback as well: a page in an operator's
//! browser that has pointed a name of its own at 127.0.0.1 gets nothing. What changes something
//! takes a `POST` with the field `Bywash-Admin`, which no page can send to another origin without
//! being asked first.

mod elephants;
mod history;
mod requests;
mod sessions;
mod status;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bytes::BytesMut;
use bywash_handover::Listener;
use bywash_message::{Fault, Fields, Limits, Request};
use bywash_shaper::Mark;
use http::{Method, StatusCode};
use serde::Serialize;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::LocalSet;

use crate::client::{Back, Body, Handler, Phase, h1};
use crate::reply::{Answer, Reply};
use crate::shared::{Life, Shared};
use crate::stream::Stream;

/// Operators and scrapers, not crowds.
const MOST_CONNECTIONS: usize = 64;

/// How long a connection may be open, watchers apart: longer than any answer takes.
const LONGEST: Duration = Duration::from_secs(60);
/// How long whoever watches may do so.
const LONGEST_WATCH: Duration = Duration::from_secs(24 * 3600);

/// A decision about an elephant says who and why in its target: two texts of 200 characters, encoded.
const LIMITS: Limits = Limits { target: 8192, fields: 64, bytes: 16 * 1024 };

/// Lets operators in while the gateway runs, serves them until it ends.
pub(crate) fn run(
    shared: Arc<Shared>,
    listener: Listener,
    life: watch::Receiver<Life>,
    ready: SyncSender<()>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(shared, listener, life, ready))
}

/// The listener, as the runtime has it.
enum Door {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Door {
    fn new(listener: Listener) -> std::io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    async fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

async fn serve(
    shared: Arc<Shared>,
    listener: Listener,
    mut life: watch::Receiver<Life>,
    ready: SyncSender<()>,
) -> std::io::Result<()> {
    let door = Door::new(listener)?;
    // Whoever waits for this is still there: it has started this thread.
    let _ = ready.send(());
    // Before that another process may be the service. An error says that the gateway is gone.
    let _ = life.wait_for(|life| *life >= Life::Runs).await;
    let seats = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let read = Arc::clone(&shared);
    tokio::task::spawn_local(async move { crate::history::keep(&read).await });
    loop {
        let accepted = tokio::select! {
            // In this order: whoever comes when it drains is the next process's.
            biased;
            _ = life.wait_for(|life| *life >= Life::Drains) => break,
            accepted = door.accept() => accepted,
        };
        let Ok(stream) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else { continue };
        let operator = Operator {
            shared: Arc::clone(&shared),
            is_local: matches!(stream, Stream::Unix(_)),
            watches: Rc::default(),
        };
        tokio::task::spawn_local(async move {
            let watches = Rc::clone(&operator.watches);
            let served = h1::serve(stream, BytesMut::new(), LIMITS, &operator);
            // A client that breaks off concerns nobody else.
            bounded(served, &watches).await;
            drop(seat);
        });
    }
    // From here on who connects comes to the next process.
    drop(door);
    let _ = life.wait_for(|life| *life == Life::Ends).await;
    Ok(())
}

/// Lets a connection last as long as it may, which is longer once it watches.
async fn bounded<T>(served: impl Future<Output = T>, watches: &std::cell::Cell<bool>) {
    let mut served = std::pin::pin!(served);
    if tokio::time::timeout(LONGEST, served.as_mut()).await.is_err() && watches.get() {
        let _ = tokio::time::timeout(LONGEST_WATCH, served).await;
    }
}

/// One operator's connection.
struct Operator {
    shared: Arc<Shared>,
    /// It came by the unix socket: whoever may open that may do everything.
    is_local: bool,
    watches: Rc<std::cell::Cell<bool>>,
}

impl Handler for Operator {
    async fn serve(&self, request: Request, _body: Body, _back: Back) -> Reply {
        self.respond(&request)
    }

    fn malformed(&self, fault: Fault) -> Reply {
        plain(StatusCode::BAD_REQUEST, fault.name()).closing()
    }

    fn too_slow(&self) -> Reply {
        plain(StatusCode::REQUEST_TIMEOUT, "").closing()
    }

    fn dawdles(&self) {}

    fn enter(&self, _phase: Phase) {}

    fn is_too_slow(&self) -> bool {
        false
    }

    fn is_stopping(&self) -> bool {
        // Who asks again is to ask the next process, if there is one.
        self.shared.is_draining.load(Ordering::Relaxed)
    }

    fn body_rate(&self) -> u64 {
        0
    }

    fn takes_lane(&self, _socket: BorrowedFd<'_>, _mark: &mut Mark, _answer: &mut Answer) {}

    fn speaks_http2(&self) -> bool {
        false
    }
}

impl Operator {
    fn respond(&self, request: &Request) -> Reply {
        if !self.is_local && !host_is_loopback(&request.authority) {
            let words = "ask for this listener by its loopback address";
            return plain(StatusCode::FORBIDDEN, words);
        }
        match request.method {
            Method::GET | Method::HEAD => self.show(request),
            Method::POST if request.fields.named(b"bywash-admin").next().is_none() => {
                plain(StatusCode::FORBIDDEN, "a POST takes the field Bywash-Admin")
            }
            Method::POST => self.change(request),
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD and POST"),
        }
    }

    fn show(&self, request: &Request) -> Reply {
        let shared = &self.shared;
        let path = request.target.path();
        if let Some(name) = path.strip_prefix("/v1/requests/") {
            return requests::explain(shared, name);
        }
        if let Some(number) = path.strip_prefix("/v1/elephants/") {
            return match number {
                "export" => elephants::export(shared),
                number => elephants::show(shared, number),
            };
        }
        match path {
            "/v1/elephants" => elephants::list(shared),
            "/livez" | "/healthz" => plain(StatusCode::OK, "ok"),
            "/readyz" if shared.is_ready() => plain(StatusCode::OK, "ready"),
            "/readyz" if shared.is_leaving.load(Ordering::Relaxed) => {
                plain(StatusCode::SERVICE_UNAVAILABLE, "draining")
            }
            "/readyz" => plain(StatusCode::SERVICE_UNAVAILABLE, "a worker has failed"),
            "/metrics" => metrics(shared),
            "/v1/status" => json(StatusCode::OK, &status::status(shared)),
            "/v1/history" => history::history(shared, &query(request)),
            "/v1/events" => {
                self.watches.set(true);
                history::events(shared, request)
            }
            "/v1/sessions" => json(StatusCode::OK, &sessions::sessions(shared)),
            // Nothing follows its head, so nobody watches.
            "/v1/tap" if request.method == Method::HEAD => requests::tap_head(),
            "/v1/tap" => {
                self.watches.set(true);
                requests::tap(shared, &query(request))
            }
            _ => plain(
                StatusCode::NOT_FOUND,
                "there are /livez, /readyz, /metrics, /v1/status, /v1/history, /v1/events, /v1/sessions, /v1/tap, \
                 /v1/requests/NAME, /v1/elephants, /v1/elephants/NUMBER, /v1/elephants/export and, to \
                 POST to, /v1/bypass and /v1/elephants/NUMBER/DECISION",
            ),
        }
    }

    fn change(&self, request: &Request) -> Reply {
        if let Some(what) = request.target.path().strip_prefix("/v1/elephants/") {
            let target = request.target.path_and_query();
            let query = target.split_once('?').map_or("", |(_, query)| query);
            return elephants::decide(&self.shared, what, query);
        }
        match (request.target.path(), query(request).get("on").map(String::as_str)) {
            ("/v1/bypass", Some(on @ ("true" | "false"))) => {
                self.shared.set_bypass(on == "true");
                json(StatusCode::OK, &status::status(&self.shared))
            }
            ("/v1/bypass", _) => plain(StatusCode::BAD_REQUEST, "say ?on=true or ?on=false"),
            _ => plain(StatusCode::NOT_FOUND, "there is /v1/bypass"),
        }
    }
}

/// The query's `name=value` pairs, without any escapes: none of ours needs one.
fn query(request: &Request) -> BTreeMap<String, String> {
    let target = request.target.path_and_query();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn host_is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn metrics(shared: &Shared) -> Reply {
    status::read_gauges(shared);
    match shared.metrics.text() {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            answer(StatusCode::OK, kind, text)
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written"),
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    let text = serde_json::to_string(value).expect("made of numbers, texts and names");
    answer(status, "application/json", text)
}

fn plain(status: StatusCode, words: &str) -> Reply {
    answer(status, "text/plain; charset=utf-8", format!("{words}\n"))
}

fn answer(status: StatusCode, kind: &str, words: String) -> Reply {
    Reply::local(status, fields(kind), words)
}

fn fields(kind: &str) -> Fields {
    let mut fields = Fields::new();
    fields.push(b"Content-Type", kind.as_bytes());
    fields.push(b"Cache-Control", b"no-store");
    fields.push(b"X-Content-Type-Options", b"nosniff");
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_hosts_are_answered() {
        for host in ["127.0.0.1", "127.0.0.1:7070", "localhost:7070", "[::1]:7070", "127.8.8.8"] {
            assert!(host_is_loopback(host.as_bytes()), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:7070", "", "[::2]"] {
            assert!(!host_is_loopback(host.as_bytes()), "{host}");
        }
    }
}
