//! Client connections: accepted, watched, served, bounded.

mod io;
mod watch;

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use bywash_config::HalfClose;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;

use crate::request::{self, Fault, Peer};
use crate::worker::Worker;
use io::ClientIo;
use watch::Wish;
pub(crate) use watch::{Client, Clients, Phase};

/// Serves one connection, in a task of its own.
pub(crate) fn serve(worker: &Rc<Worker>, stream: TcpStream, peer: SocketAddr) {
    let shared = &worker.shared;
    if shared.connections.load(Ordering::Relaxed) >= shared.config.limits.connections {
        shared.metrics.connection_refused();
        return;
    }
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let half_close = shared.config.listen.half_close;
    let Ok(client) = worker.clients.admit(&stream, half_close) else {
        shared.metrics.connection_refused();
        return;
    };
    let open = Open::new(Rc::clone(worker));
    tokio::task::spawn_local(async move {
        connection(&open.0, stream, peer, client).await;
    });
}

/// Counts a connection for as long as it is open.
struct Open(Rc<Worker>);

impl Open {
    fn new(worker: Rc<Worker>) -> Self {
        worker.shared.connections.fetch_add(1, Ordering::Relaxed);
        Self(worker)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The whole life of one connection. Returning drops hyper's connection and with it whatever
/// request is in it, in whatever phase: this is the one place where a departure takes effect.
async fn connection(worker: &Rc<Worker>, stream: TcpStream, peer: SocketAddr, client: Rc<Client>) {
    let io = ClientIo::new(stream, Rc::clone(&client));
    let peer = Rc::new(Peer::new(peer));
    let service = service_fn(|request| {
        request::serve(Rc::clone(worker), Rc::clone(&client), Rc::clone(&peer), request)
    });
    let mut http = pin!(http(worker).serve_connection(io, service));
    let mut stopping = false;
    std::future::poll_fn(|cx| {
        match client.poll_wish(cx) {
            Wish::End => return Poll::Ready(()),
            Wish::EndSoon if !stopping => {
                stopping = true;
                http.as_mut().graceful_shutdown();
            }
            Wish::EndSoon | Wish::GoOn => {}
        }
        http.as_mut().poll(cx).map(|ended| note(worker, ended.err().as_ref()))
    })
    .await;
}

/// hyper answers what is no HTTP itself, and ends the connection with the reason.
fn note(worker: &Worker, error: Option<&hyper::Error>) {
    if error.is_some_and(hyper::Error::is_parse) {
        worker.shared.metrics.malformed(Fault::Syntax);
    }
}

/// hyper, set up. Heads are timed by the worker's tick and not by a timer for each request.
///
/// Not `pipeline_flush`: it takes the bound off the write buffer, and it holds a finished answer
/// back while the next pipelined request waits for its slot.
fn http(worker: &Worker) -> http1::Builder {
    let limits = &worker.shared.config.limits;
    let mut builder = http1::Builder::new();
    builder
        .half_close(worker.shared.config.listen.half_close == HalfClose::Allow)
        .header_read_timeout(None)
        .max_headers(limits.max_headers)
        .max_buf_size(limits.max_header_bytes.max(8192));
    builder
}
