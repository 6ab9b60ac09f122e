//! Answers that the gateway gives itself: the one place where reasons become HTTP.
//!
//! 503 says that the site is too busy for this request now (`Retry-After` says when to come
//! again), 502 and 504 that the upstream failed, 4xx that the message is at fault. `Proxy-Status`
//! (RFC 9209) says which, for programs.

use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::response::Builder;
use http::{Response, StatusCode};

use super::Answer;
use super::examine::Fault;
use crate::driver::Refusal;
use crate::upstream::UpstreamError;

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The site is too busy for it.
pub(super) fn busy(refusal: &Refusal, body_is_read: bool) -> Response<Answer> {
    let seconds = jittered(refusal.retry_after.as_secs_f64());
    let status =
        format!("bywash; error=connection_limit_reached; bywash-reason={}", refusal.reason.name());
    let mut answer = local(StatusCode::SERVICE_UNAVAILABLE)
        .header(header::RETRY_AFTER, seconds)
        .header(header::CACHE_CONTROL, "no-store")
        .header(PROXY_STATUS, status);
    if !body_is_read {
        // There is no telling how much more would come: the connection ends.
        answer = answer.header(header::CONNECTION, "close");
    }
    text(answer, format!("The site is very busy. Please try again in {seconds} s.\n"))
}

/// The upstream failed it.
pub(super) fn upstream(error: &UpstreamError) -> Response<Answer> {
    let status = status_of(error);
    let answer = local(status)
        .header(header::CACHE_CONTROL, "no-store")
        .header(PROXY_STATUS, format!("bywash; error={}", kind_of(error)));
    text(answer, format!("{}\n", status.canonical_reason().unwrap_or("Upstream error")))
}

/// The message is at fault; nothing of it was forwarded, and the connection is closed, as there
/// is no telling where the next message begins.
pub(super) fn malformed(fault: Fault) -> Response<Answer> {
    let status = match fault {
        Fault::Syntax | Fault::Host | Fault::Framing | Fault::Nominated | Fault::Body => {
            StatusCode::BAD_REQUEST
        }
        Fault::Method => StatusCode::METHOD_NOT_ALLOWED,
        Fault::Expectation => StatusCode::EXPECTATION_FAILED,
        Fault::UriTooLong => StatusCode::URI_TOO_LONG,
        Fault::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    };
    let mut answer = local(status)
        .header(header::CONNECTION, "close")
        .header(PROXY_STATUS, "bywash; error=http_request_error");
    if fault == Fault::Method {
        answer = answer.header(header::ALLOW, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    text(answer, format!("{}\n", status.canonical_reason().unwrap_or("Bad request")))
}

/// The status that an upstream's failure is answered with.
pub(super) const fn status_of(error: &UpstreamError) -> StatusCode {
    match error {
        UpstreamError::ConnectTimeout(_) | UpstreamError::ResponseTimeout(_) => {
            StatusCode::GATEWAY_TIMEOUT
        }
        UpstreamError::Upload(_) => StatusCode::BAD_REQUEST,
        UpstreamError::Connect(_)
        | UpstreamError::Closed(_)
        | UpstreamError::Switched
        | UpstreamError::Garbage(_) => StatusCode::BAD_GATEWAY,
    }
}

/// The registered proxy error type (RFC 9209 §2.3) for an upstream's failure.
const fn kind_of(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Connect(_) => "connection_refused",
        UpstreamError::ConnectTimeout(_) => "connection_timeout",
        UpstreamError::ResponseTimeout(_) => "http_response_timeout",
        UpstreamError::Closed(_) => "connection_terminated",
        UpstreamError::Upload(_) => "http_request_error",
        UpstreamError::Switched | UpstreamError::Garbage(_) => "http_protocol_error",
    }
}

fn local(status: StatusCode) -> Builder {
    Response::builder().status(status).header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn text(answer: Builder, words: String) -> Response<Answer> {
    answer
        .body(Answer::Local(Some(Bytes::from(words))))
        .expect("status and fields are constants, numbers and enum names")
}

/// A whole answer in one piece, for the admin listener.
pub(crate) fn full(answer: Builder, words: impl Into<Bytes>) -> Response<Answer> {
    answer
        .body(Answer::Local(Some(words.into())))
        .expect("the admin listener's fields are constants")
}

/// Half to one and a half times as long, at least a second: so that those who are refused
/// together do not come back together.
fn jittered(seconds: f64) -> u64 {
    // Each `RandomState` has a key of its own: enough chance for a jitter.
    let chance = RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64;
    ((seconds * (0.5 + chance)).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_clients_are_told_different_times_within_half_as_much_again() {
        let times: Vec<u64> = (0..200).map(|_| jittered(20.0)).collect();
        assert!(times.iter().all(|seconds| (10..=30).contains(seconds)), "{times:?}");
        assert!(times.iter().any(|seconds| *seconds != times[0]));
        assert_eq!(jittered(0.0), 1);
    }
}
