//! A hyper handler for `scripts/stacks`, which runs it once without and once with the terminate
//! layer. The handler works in small steps and has no checkpoints. A termination drops its future,
//! and the handler reports the drop.

use std::convert::Infallible;
use std::future::Future;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use bywash_tower::{Class, Controller, TerminateLayer};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower_layer::Layer;
use tower_service::Service;

const STEPS: usize = 40;
const STEP: Duration = Duration::from_millis(20);

/// A guard that reports the progress of one request to the observer over UDP. If it is dropped
/// before the request has ended, it reports `told`.
struct ProgressReport {
    name: String,
    observer: Arc<UdpSocket>,
    is_done: bool,
}

impl ProgressReport {
    fn tell(&self, word: &str) {
        let _ = self.observer.send(format!("{} {word}", self.name).as_bytes());
    }
}

impl Drop for ProgressReport {
    fn drop(&mut self) {
        self.tell(if self.is_done { "done" } else { "told" });
    }
}

#[derive(Clone)]
struct Work(Arc<UdpSocket>);

impl Service<Request<Incoming>> for Work {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let told = ProgressReport { name, observer: Arc::clone(&self.0), is_done: false };
        Box::pin(async move {
            // Move the whole struct into the future, and not single fields of it.
            let mut told = told;
            for _ in 0..STEPS {
                told.tell("step");
                tokio::time::sleep(STEP).await;
            }
            told.is_done = true;
            Ok(Response::new(Full::from("done")))
        })
    }
}

fn port(variable: &str) -> SocketAddr {
    let port = std::env::var(variable).ok().and_then(|port| port.parse().ok());
    SocketAddr::from(([127, 0, 0, 1], port.expect("scripts/stacks says the ports")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let observer = UdpSocket::bind(("127.0.0.1", 0))?;
    observer.connect(port("STACKS_OBSERVER"))?;
    let work = Work(Arc::new(observer));
    let class = Class::new("work", Duration::from_secs(1), Duration::from_secs(30));
    let controller = Controller::new([class]).expect("these settings make sense");
    let layer = TerminateLayer::new(&controller, "work").expect("it is declared");
    let is_within = std::env::args().nth(1).is_some_and(|word| word == "sdk");
    let listener = TcpListener::bind(port("STACKS_PORT")).await?;
    loop {
        let io = TokioIo::new(listener.accept().await?.0);
        let http = hyper::server::conn::http1::Builder::new();
        // A client that disconnects ends its connection with an error. The program provokes this on
        // purpose, so the error is ignored.
        if is_within {
            let served =
                http.serve_connection(io, TowerToHyperService::new(layer.layer(work.clone())));
            tokio::spawn(async { drop(served.await) });
        } else {
            let served = http.serve_connection(io, TowerToHyperService::new(work.clone()));
            tokio::spawn(async { drop(served.await) });
        }
    }
}
