//! Measures what the terminate layer adds to one request, and the cost of one checkpoint.
//!
//!     cargo bench -p bywash-tower --bench cost
//!
//! Two servers run in one process: one with the layer and one without. The requests to the two
//! alternate, each over one loopback connection to hyper. So the ratio of the two times holds on
//! another machine, although the times do not. The program prints the median of all rounds.

use std::convert::Infallible;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use bywash_tower::{Class, Controller, TerminateLayer};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer;
use tower_service::Service;

const TURNS: usize = 15;
const REQUESTS: u32 = 4000;
const CHECKPOINTS: u32 = 1_000_000;

fn main() {
    let controller = Controller::new([Class::new("search", secs(1), secs(30))])
        .expect("these settings make sense");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(requests(&controller));
    checkpoints(&controller);
}

async fn requests(controller: &Controller) {
    let layer = TerminateLayer::new(controller, "search").expect("it is declared");
    let mut plain = connect(serve(Plain).await).await;
    let mut with = connect(serve(layer.layer(Plain)).await).await;
    let (mut without_took, mut with_took, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let (without, with) = (turn(&mut plain).await, turn(&mut with).await);
        without_took.push(without);
        with_took.push(with);
        ratios.push(with / without);
    }
    let (without, with, ratio) = (median(without_took), median(with_took), median(ratios));
    println!("request: {without:.1} us without, {with:.1} us with, ratio {ratio:.3}");
}

fn checkpoints(controller: &Controller) {
    let token = controller.class("search").expect("it is declared").begin(None);
    let turn = |_| {
        let start = Instant::now();
        for _ in 0..CHECKPOINTS {
            let _ = black_box(black_box(&token).checkpoint());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CHECKPOINTS)
    };
    println!("checkpoint: {:.0} ns", median((0..TURNS).map(turn).collect()));
}

/// Sends [`REQUESTS`] requests one after the other, and returns the mean time of one request in
/// microseconds.
async fn turn(stream: &mut TcpStream) -> f64 {
    let start = Instant::now();
    let mut answer = [0; 1024];
    for _ in 0..REQUESTS {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("it is sent");
        let length = stream.read(&mut answer).await.expect("it is answered");
        assert!(answer[..length].ends_with(b"done"), "one answer in one piece");
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(REQUESTS)
}

async fn serve<S>(service: S) -> SocketAddr
where
    S: Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("somebody comes");
        let http = hyper::server::conn::http1::Builder::new();
        http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await
    });
    address
}

async fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("it is open");
    stream
}

#[derive(Clone)]
struct Plain;

impl Service<Request<Incoming>> for Plain {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Incoming>) -> Self::Future {
        std::future::ready(Ok(Response::new("done".into())))
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
