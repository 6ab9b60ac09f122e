//! Tests of the layer on a real server: hyper over HTTP/1.1, on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bywash_tower::{Class, Controller, Stats, TerminateLayer, Terminated, Token};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_layer::Layer;

use crate::{millis, secs};

/// The time limit of a wait, longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The channel for events that the handlers report, and the signal for which they wait.
#[derive(Clone)]
struct Handlers {
    events: UnboundedSender<&'static str>,
    may_write: Arc<Notify>,
}

impl Handlers {
    async fn handle(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Terminated> {
        let token = request.extensions().get::<Token>().unwrap().clone();
        match request.uri().path() {
            "/compute" => self.compute(token).await?,
            "/write" => {
                token.cancel_termination()?;
                self.says("begun");
                self.may_write.notified().await;
                self.says("written");
            }
            "/wait" => std::future::pending().await,
            _ => {}
        }
        Ok(Response::new("done".into()))
    }

    /// Runs a thread for the request. The thread cannot be dropped, and ends at its next
    /// checkpoint.
    async fn compute(self, token: Token) -> Result<(), Terminated> {
        let thread = tokio::task::spawn_blocking(move || {
            self.says("begun");
            loop {
                if let Err(terminated) = token.checkpoint() {
                    self.says(terminated.reason.name());
                    return Err(terminated);
                }
                std::thread::yield_now();
            }
        });
        thread.await.unwrap()
    }

    fn says(&self, event: &'static str) {
        // The receiver is dropped when the test ends.
        let _unheard = self.events.send(event);
    }
}

struct Server {
    address: SocketAddr,
    controller: Controller,
    handlers: Handlers,
    events: UnboundedReceiver<&'static str>,
    _accepts: JoinSet<()>,
}

impl Server {
    async fn new(run_max: Duration) -> Self {
        let controller = Controller::new([Class::new("search", millis(50), run_max)]).unwrap();
        let layer = TerminateLayer::new(&controller, "search").unwrap();
        let (sender, events) = unbounded_channel();
        let handlers = Handlers { events: sender, may_write: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mut accepts, given) = (JoinSet::new(), handlers.clone());
        accepts.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (handlers, at_end) = (given.clone(), given.clone());
                let handler =
                    hyper::service::service_fn(move |request| handlers.clone().handle(request));
                let service = TowerToHyperService::new(layer.layer(Tower(handler)));
                let http = hyper::server::conn::http1::Builder::new();
                let served = http.serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    let _broken = served.await;
                    at_end.says("closed");
                });
            }
        });
        Self { address, controller, handlers, events, _accepts: accepts }
    }

    /// Waits until the handlers report this event. Earlier events are skipped.
    async fn is_told(&mut self, expected: &str) {
        let told = async { while self.events.recv().await.unwrap() != expected {} };
        timeout(PATIENCE, told).await.unwrap();
    }

    async fn ask(&self, method: &str, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request, and returns the head of the response without its date, and the body.
    async fn answer(&self, method: &str, path: &str) -> (String, String) {
        let mut text = String::new();
        let mut stream = self.ask(method, path).await;
        timeout(PATIENCE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let fields = head.lines().filter(|line| !line.starts_with("date:"));
        (fields.collect::<Vec<_>>().join("\n"), body.to_owned())
    }

    fn stats(&self) -> Stats {
        self.controller.stats()["search"]
    }

    /// Waits until no request runs. A request may still run when it has reported its last event.
    async fn rests(&self) {
        let rests = async {
            while self.stats().running > 0 {
                tokio::time::sleep(millis(1)).await;
            }
        };
        timeout(PATIENCE, rests).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_is_stopped_by_the_threshold() {
    let mut server = Server::new(millis(500)).await;
    assert!(server.answer("GET", "/quick").await.0.starts_with("HTTP/1.1 200"));
    assert!(server.answer("GET", "/compute").await.0.starts_with("HTTP/1.1 504"));
    server.is_told("ran_too_long").await;
    server.rests().await;
    assert_eq!((server.stats().lost, server.stats().client_left), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_is_stopped_by_a_client_who_leaves() {
    let mut server = Server::new(secs(3600)).await;
    let client = server.ask("GET", "/compute").await;
    server.is_told("begun").await;
    drop(client);
    server.is_told("client_left").await;
    server.rests().await;
    assert_eq!((server.stats().lost, server.stats().client_left), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cancels_termination_finishes_although_its_client_leaves() {
    let mut server = Server::new(secs(3600)).await;
    let client = server.ask("GET", "/write").await;
    server.is_told("begun").await;
    drop(client);
    server.is_told("closed").await;
    server.handlers.may_write.notify_one();
    server.is_told("written").await;
    server.rests().await;
    assert_eq!((server.stats().deferred, server.stats().client_left), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_to_head_is_the_head_of_the_answer_to_get() {
    let server = Server::new(millis(50)).await;
    let (get, body) = server.answer("GET", "/wait").await;
    let (head, none) = server.answer("HEAD", "/wait").await;
    assert!(get.starts_with("HTTP/1.1 504") && body.ends_with("(ran_too_long)\n"), "{get}{body}");
    assert_eq!((head, &*none), (get, ""));
}

/// An adapter that makes a tower service of a hyper service.
#[derive(Clone)]
struct Tower<S>(S);

impl<S: hyper::service::Service<R>, R> tower_service::Service<R> for Tower<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), S::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}
