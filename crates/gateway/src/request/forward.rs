//! The third phase: the request goes to the upstream, the head of its answer comes back.

use std::net::SocketAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;

use super::Upload;
use crate::record::Record;
use crate::upstream::{Link, SendError, UpstreamError};
use crate::worker::Worker;

/// Fields that belong to one connection and never go to the next (RFC 9110 §7.6.1), and `Expect`,
/// which the gateway has answered itself.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

const REQUEST: HeaderName = HeaderName::from_static("bywash-request");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const VIA: HeaderValue = HeaderValue::from_static("1.1 bywash");
const HTTP: HeaderValue = HeaderValue::from_static("http");

/// Sends a request; gives the head of the answer and the connection that its body comes on.
pub(super) async fn forward(
    worker: &Worker,
    record: &Record,
    mut parts: Parts,
    upload: Upload,
    peer: SocketAddr,
) -> Result<(Link, Response<Incoming>), UpstreamError> {
    prepare(&mut parts, worker.pool.authority(), record.name(), peer);
    let limit = worker.shared.config.upstream.response_timeout.to_std();
    let answer = send(worker, Request::from_parts(parts, upload));
    match tokio::time::timeout(limit, answer).await {
        Ok(Ok((link, mut response))) => {
            remove_hop_by_hop(response.headers_mut());
            Ok((link, response))
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Err(UpstreamError::ResponseTimeout(limit)),
    }
}

/// Sends on an idle connection if there is one. The upstream may be closing that at this very
/// moment; then a request of which nothing was sent goes out on a new connection, and so does a
/// safe one without a body. Anything else might be done twice, and is reported.
async fn send(
    worker: &Worker,
    request: Request<Upload>,
) -> Result<(Link, Response<Incoming>), UpstreamError> {
    let Some(mut link) = worker.pool.take() else {
        return send_fresh(worker, request).await;
    };
    let again = replayable(&request);
    match link.exchange(request).await {
        Ok(response) => Ok((link, response)),
        Err(failed) => match (*failed, again) {
            (SendError { unsent: Some(request), .. }, _) => send_fresh(worker, request).await,
            (SendError { error: UpstreamError::Closed(_), .. }, Some(again)) => {
                // The upload of a request without a body is empty: any other will do as well.
                let mut link = worker.pool.connect().await?;
                let request = again.map(|()| Upload::empty(&worker.shared));
                exchange(&mut link, request).await.map(|response| (link, response))
            }
            (SendError { error, .. }, _) => Err(error),
        },
    }
}

async fn send_fresh(
    worker: &Worker,
    request: Request<Upload>,
) -> Result<(Link, Response<Incoming>), UpstreamError> {
    let mut link = worker.pool.connect().await?;
    exchange(&mut link, request).await.map(|response| (link, response))
}

async fn exchange(
    link: &mut Link,
    request: Request<Upload>,
) -> Result<Response<Incoming>, UpstreamError> {
    link.exchange(request).await.map_err(|failed| failed.error)
}

/// A copy of a request that may be made twice: safe, and without a body.
fn replayable(request: &Request<Upload>) -> Option<Request<()>> {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD);
    if !safe || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    Some(copy)
}

/// Makes the client's head into ours.
fn prepare(parts: &mut Parts, authority: &str, name: u64, peer: SocketAddr) {
    remove_hop_by_hop(&mut parts.headers);
    remove_our_own(&mut parts.headers);
    parts.version = Version::HTTP_11;
    parts.uri = origin_form(&parts.uri);
    let headers = &mut parts.headers;
    if !headers.contains_key(header::HOST) {
        // An HTTP/1.0 client may leave it out; the upstream is spoken to in HTTP/1.1.
        if let Ok(host) = HeaderValue::from_str(authority) {
            headers.insert(header::HOST, host);
        }
    }
    headers.append(header::VIA, VIA);
    headers.entry(FORWARDED_PROTO).or_insert(HTTP);
    if let Some(chain) = forwarded_for(headers, peer) {
        headers.insert(FORWARDED_FOR, chain);
    }
    if let Ok(name) = HeaderValue::from_str(&format!("{name:016x}")) {
        headers.insert(REQUEST, name);
    }
}

/// Path and query alone: where to connect is not the client's to say.
fn origin_form(uri: &Uri) -> Uri {
    let target = uri.path_and_query().cloned();
    Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")))
}

fn forwarded_for(headers: &HeaderMap, peer: SocketAddr) -> Option<HeaderValue> {
    let mut chain = String::new();
    for value in headers.get_all(FORWARDED_FOR) {
        chain.push_str(value.to_str().ok()?);
        chain.push_str(", ");
    }
    chain.push_str(&peer.ip().to_string());
    HeaderValue::from_str(&chain).ok()
}

/// Removes what belongs to one connection: the fields that `Connection` names, then the fixed
/// ones. In both directions.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let nominated: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            // The length of a body is not the connection's business, whoever says so.
            .filter(|name| *name != header::CONTENT_LENGTH)
            .collect();
        for name in nominated {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Removes every field that an application could take for one of ours, however it is spelt.
fn remove_our_own(headers: &mut HeaderMap) {
    let ours = |name: &str| name.starts_with("bywash") && name[6..].starts_with(['-', '_', '.']);
    let names: Vec<HeaderName> =
        headers.keys().filter(|name| ours(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn what_connection_names_is_removed_and_the_length_stays() {
        let mut map = headers(&[
            ("connection", "close, X-Hop, content-length"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("content-length", "5"),
            ("x-end", "2"),
        ]);
        remove_hop_by_hop(&mut map);
        assert_eq!(map, headers(&[("content-length", "5"), ("x-end", "2")]));
    }

    #[test]
    fn no_spelling_of_our_own_fields_gets_through() {
        let mut map = headers(&[
            ("bywash-class", "confirm"),
            ("bywash_level", "gold"),
            ("bywash.x", "1"),
            ("bywashing", "day"),
        ]);
        remove_our_own(&mut map);
        assert_eq!(map, headers(&[("bywashing", "day")]));
    }

    #[test]
    fn the_peer_joins_the_chain_of_forwarders() {
        let peer = "192.0.2.1:5".parse().unwrap();
        let chain = forwarded_for(&headers(&[("x-forwarded-for", "198.51.100.7")]), peer).unwrap();
        assert_eq!(chain, "198.51.100.7, 192.0.2.1");
    }
}
