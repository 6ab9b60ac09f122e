//! The layer on a real server, hyper, over loopback.

use std::time::Duration;

use bytes::Bytes;
use bywash_tower::{Class, Controller, TerminateLayer, Terminated, Token};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tower_layer::Layer;

use crate::{millis, secs};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

async fn handle(
    request: Request<Incoming>,
    ended: UnboundedSender<&'static str>,
) -> Result<Response<Full<Bytes>>, Terminated> {
    let token = request.extensions().get::<Token>().unwrap().clone();
    if request.uri().path() == "/quick" {
        return Ok(Response::new("done".into()));
    }
    // A thread cannot be dropped: it goes on until its next checkpoint.
    let thread = tokio::task::spawn_blocking(move || {
        loop {
            if let Err(terminated) = token.checkpoint() {
                ended.send(terminated.reason.name()).unwrap();
                return Err(terminated);
            }
            std::thread::yield_now();
        }
    });
    thread.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_is_stopped_by_the_threshold_and_by_a_client_who_leaves() {
    for (run_max, expected) in [(millis(100), "ran_too_long"), (secs(3600), "client_left")] {
        let controller = Controller::new([Class::new("search", millis(50), run_max)]).unwrap();
        let layer = TerminateLayer::new(&controller, "search").unwrap();
        let (ended, mut end) = unbounded_channel();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let ended = ended.clone();
                let handler =
                    hyper::service::service_fn(move |request| handle(request, ended.clone()));
                let service = layer.layer(Tower(handler));
                let http = hyper::server::conn::http1::Builder::new();
                let served =
                    http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
                tokio::spawn(served);
            }
        });
        assert!(answer(address, "/quick").await.starts_with("HTTP/1.1 200"));
        if expected == "client_left" {
            let _left = ask(address, "/long").await;
            while controller.stats()["search"].arrived < 2 {
                tokio::task::yield_now().await;
            }
        } else {
            assert!(answer(address, "/long").await.starts_with("HTTP/1.1 504"));
        }
        let reason = timeout(PATIENCE, end.recv()).await.unwrap().unwrap();
        assert_eq!(reason, expected);
        let stats = controller.stats()["search"];
        assert_eq!(
            (stats.lost, stats.client_left),
            if run_max < secs(1) { (1, 0) } else { (0, 1) }
        );
        assert_eq!(stats.running, 0);
        server.abort();
    }
}

async fn ask(address: std::net::SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn answer(address: std::net::SocketAddr, path: &str) -> String {
    let mut text = String::new();
    let mut stream = ask(address, path).await;
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    text
}

/// A service of hyper's as one of tower's.
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
