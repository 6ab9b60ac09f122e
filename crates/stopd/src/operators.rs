//! The HTTP interface for operators: `/metrics` for Prometheus and `/v1/status` as JSON, on a
//! loopback address.
//!
//! The interface is read-only. Only requests with a loopback `Host` are answered. This blocks DNS
//! rebinding, in which a page in a browser maps its own host name to 127.0.0.1.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::cancel_log::CancelLog;
use crate::service::Service;

/// The maximum number of connections. Only operators and programs that collect metrics use them.
const MOST: usize = 16;
/// The time limit of a connection. It exceeds the duration of any response.
const LONGEST: Duration = Duration::from_secs(5);

pub(crate) async fn serve(listener: TcpListener, service: Service, cancel_log: CancelLog) {
    let permits = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let (service, cancel_log) = (service.clone(), cancel_log.clone());
        tokio::task::spawn_local(async move {
            let _ = tokio::time::timeout(LONGEST, answer(stream, service, cancel_log)).await;
            drop(permit);
        });
    }
}

async fn answer(stream: TcpStream, service: Service, cancel_log: CancelLog) {
    let service = service_fn(move |request| {
        let response = respond(&request, &service, &cancel_log);
        async { Ok::<_, Infallible>(response) }
    });
    // An error means that the client has disconnected, which needs no action.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn respond(
    request: &Request<Incoming>,
    service: &Service,
    cancel_log: &CancelLog,
) -> Response<Full<Bytes>> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_loopback) || hosts.next().is_some() {
        return plain(StatusCode::MISDIRECTED_REQUEST, "the Host must be a loopback address\n");
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            whole(StatusCode::OK, kind, service.numbers().text())
        }
        (&Method::GET, "/v1/status") => {
            whole(StatusCode::OK, "application/json", format!("{}\n", status(service, cancel_log)))
        }
        (&Method::GET, _) => {
            plain(StatusCode::NOT_FOUND, "the paths are /metrics and /v1/status\n")
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "this listener is read-only\n"),
    }
}

fn status(service: &Service, cancel_log: &CancelLog) -> serde_json::Value {
    let complaints = service.numbers().complaints();
    match service {
        Service::Broker(broker) => json!({
            "mode": broker.mode.name(),
            "leases": broker.leases(),
            "complaints": complaints,
            "log_lines_dropped": cancel_log.dropped(),
        }),
        Service::Relay(relay) => json!({
            "upstream": relay.upstream(),
            "complaints": complaints,
        }),
    }
}

/// Returns whether a `Host` field, with or without a port, names the loopback interface.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    whole(status, "text/plain; charset=utf-8", text.to_owned())
}

fn whole(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
