//! The Rust application that the conformance tests of `sdk/conformance` drive, on hyper.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use bywash_tower::{
    Class, Controller, DatabaseName, LeaseError, StopClient, TerminateLayer, Terminated, Token,
};
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower_layer::Layer;
use tower_service::Service;

#[derive(Clone)]
struct App(StopClient);

impl Service<Request<Incoming>> for App {
    type Response = Response<Full<Bytes>>;
    type Error = Terminated;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Terminated>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Terminated>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let token = request.extensions().get::<Token>().expect("the layer has made it").clone();
        let (path, stop_client) = (request.uri().path().to_owned(), self.0.clone());
        Box::pin(async move {
            let body = match path.as_str() {
                "/name" => token.request().map(ToString::to_string).unwrap_or_default(),
                "/left" => token.left().unwrap_or_default().as_millis().to_string(),
                "/outgoing" => json(&token.outgoing()),
                "/query" => query(&token, &stop_client).await,
                _ => pending().await,
            };
            Ok(Response::new(Full::from(body)))
        })
    }
}

/// Leases a database connection, and holds the lease until the request is over.
async fn query(token: &Token, stop_client: &StopClient) -> String {
    let shop: DatabaseName = "shop".parse().expect("these are letters");
    match stop_client.lease(token, &shop, 7, (), |()| {}).await {
        Ok(_leased) => pending().await,
        Err(LeaseError::Stopped(over)) => format!("stopped {}", over.reason.name()),
        Err(LeaseError::Taken) => "taken".to_owned(),
    }
}

/// Returns the header fields as JSON. Several values of one field are joined by commas.
fn json(head: &HeaderMap) -> String {
    let mut fields = serde_json::Map::new();
    for name in head.keys() {
        let values = head.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let joined = values.collect::<Vec<_>>().join(",");
        fields.insert(name.as_str().to_owned(), joined.into());
    }
    serde_json::Value::Object(fields).to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let (short, long) = (Duration::from_millis(50), Duration::from_secs(3600));
    let work = Class::new("work", Duration::from_secs(1), long);
    let controller = Controller::new([work, Class::new("busy", short, short)]);
    let controller = controller.expect("these settings make sense");
    let [work, busy] = ["work", "busy"].map(|name| controller.class(name).expect("it is declared"));
    let layer = TerminateLayer::by(move |_, uri| {
        Some(if uri.path() == "/busy" { busy.clone() } else { work.clone() })
    });
    let app = App(StopClient::new());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let io = TokioIo::new(listener.accept().await?.0);
        let service = TowerToHyperService::new(layer.layer(app.clone()));
        let served = hyper::server::conn::http1::Builder::new().serve_connection(io, service);
        // A client that disconnects ends its connection with an error. The tests provoke this on
        // purpose, so the error is ignored.
        tokio::spawn(async { drop(served.await) });
    }
}
