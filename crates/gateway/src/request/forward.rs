//! The third phase: the request goes to the upstream, the head of its answer comes back.

use std::pin::pin;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;

use super::Upload;
use super::fields::Fields;
use crate::upstream::{Link, SendError, UpstreamError};
use crate::worker::Worker;

const REQUEST: HeaderName = HeaderName::from_static("bywash-request");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const VIA: HeaderValue = HeaderValue::from_static("1.1 bywash");
const VIA_OLD: HeaderValue = HeaderValue::from_static("1.0 bywash");
const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");
const HTTP: HeaderValue = HeaderValue::from_static("http");

/// A request as it is to be forwarded.
pub(super) struct Forward<'a> {
    pub(super) parts: Parts,
    pub(super) upload: Upload,
    pub(super) fields: Fields,
    pub(super) peer: &'a HeaderValue,
    /// Its name.
    pub(super) name: u64,
}

/// Sends a request; gives the head of the answer and the connection that its body comes on.
pub(super) async fn forward(
    worker: &Worker,
    mut forward: Forward<'_>,
) -> Result<(Link, Response<Incoming>), UpstreamError> {
    forward.prepare(worker.pool.host());
    let limit = worker.shared.config.upstream.response_timeout.to_std();
    let progress = forward.upload.progress();
    let mut answer = pin!(send(worker, Request::from_parts(forward.parts, forward.upload)));
    loop {
        let before = progress.get();
        match tokio::time::timeout(limit, answer.as_mut()).await {
            Ok(Ok((_, response))) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return Err(UpstreamError::Switched);
            }
            Ok(answer) => return answer,
            // As long as the client's body goes up, the upstream may wait for the rest of it.
            Err(_) if progress.get() != before => {}
            Err(_) => return Err(UpstreamError::ResponseTimeout(limit)),
        }
    }
}

/// Sends on an idle connection if there is one. The upstream may be closing that at this very
/// moment; then a request of which nothing was sent goes out on a new connection. So does a safe
/// one without a body. Anything else might be done twice, and is reported.
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

impl Forward<'_> {
    /// Makes the client's head into ours.
    fn prepare(&mut self, host: &HeaderValue) {
        let (fields, headers) = (self.fields, &mut self.parts.headers);
        fields.remove_hop_by_hop(headers);
        fields.remove_ours(headers);
        if fields.transfer_encoding {
            // hyper takes a GET that names neither length nor coding for one without a body.
            headers.insert(header::TRANSFER_ENCODING, CHUNKED);
        }
        if fields.hosts == 0 {
            // An HTTP/1.0 client may leave it out; the upstream is spoken to in HTTP/1.1.
            let named = self.parts.uri.authority().map(|name| HeaderValue::from_str(name.as_str()));
            let host = named.and_then(Result::ok).unwrap_or_else(|| host.clone());
            headers.insert(header::HOST, host);
        }
        let old = self.parts.version == Version::HTTP_10;
        headers.append(header::VIA, if old { VIA_OLD } else { VIA });
        if !fields.forwarded_proto {
            headers.insert(FORWARDED_PROTO, HTTP);
        }
        let chain = if fields.forwarded_for { chain(headers, self.peer) } else { None };
        headers.insert(FORWARDED_FOR, chain.unwrap_or_else(|| self.peer.clone()));
        headers.insert(REQUEST, hexadecimal(self.name));
        self.parts.version = Version::HTTP_11;
        if self.parts.uri.authority().is_some() {
            self.parts.uri = origin_form(&self.parts.uri);
        }
    }
}

/// Path and query alone: where to connect is not the client's to say.
fn origin_form(uri: &Uri) -> Uri {
    let target = uri.path_and_query().cloned();
    Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")))
}

/// The forwarders so far, and the peer. `None` if what was sent is no text.
fn chain(headers: &HeaderMap, peer: &HeaderValue) -> Option<HeaderValue> {
    let mut chain = Vec::new();
    for value in headers.get_all(FORWARDED_FOR) {
        chain.extend_from_slice(value.to_str().ok()?.as_bytes());
        chain.extend_from_slice(b", ");
    }
    chain.extend_from_slice(peer.as_bytes());
    HeaderValue::from_bytes(&chain).ok()
}

/// Sixteen hexadecimal digits.
fn hexadecimal(name: u64) -> HeaderValue {
    let digit = |i: u32| b"0123456789abcdef"[(name >> (60 - 4 * i)) as usize & 0xf];
    let digits: [u8; 16] = core::array::from_fn(|i| digit(i as u32));
    HeaderValue::from_bytes(&digits).expect("hexadecimal digits are visible characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_joins_the_chain_of_forwarders() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, HeaderValue::from_static("198.51.100.7"));
        let peer = HeaderValue::from_static("192.0.2.1");
        assert_eq!(chain(&headers, &peer).unwrap(), "198.51.100.7, 192.0.2.1");
    }

    #[test]
    fn a_name_is_sixteen_digits() {
        assert_eq!(hexadecimal(0x1234_abcd), "000000001234abcd");
    }
}
