//! The responses to requests that are terminated or refused.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::admission::Refused;
use crate::terminated::{Reason, Terminated};

// The problem types of RFC 9457. The gateway also uses `BUSY`, from the IETF draft on RateLimit
// header fields. `PLAIN` means no more than the status of the response.
const BUSY: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
const PLAIN: &str = "about:blank";

/// The format of an error response: JSON or text, with or without a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusalFormat {
    is_json: bool,
    has_body: bool,
}

impl RefusalFormat {
    pub(crate) fn of(method: &Method, head: &HeaderMap) -> Self {
        let accepts = |value: &HeaderValue| {
            value.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"json"))
        };
        Self { is_json: head.get_all(ACCEPT).iter().any(accepts), has_body: method != Method::HEAD }
    }
}

impl Terminated {
    /// Returns the 504 response to a request with this method and these header fields. The body is
    /// problem+json (RFC 9457) if the client accepts JSON, else a line of text. The layer sends
    /// this response. A handler with its own error handling can use it too.
    pub fn answer<B: From<Bytes>>(&self, method: &Method, head: &HeaderMap) -> Response<B> {
        self.say(RefusalFormat::of(method, head))
    }

    pub(crate) fn say<B: From<Bytes>>(&self, format: RefusalFormat) -> Response<B> {
        let (reason, again) = (self.reason.name(), self.again());
        let (kind, title) = match self.reason {
            Reason::Deadline => (PLAIN, "The deadline of this request has passed.".into()),
            Reason::ClientLeft => (PLAIN, "The client of this request has left.".into()),
            Reason::RanTooLong => {
                let again = again.unwrap_or_default();
                (BUSY, format!("The site is very busy. Please try again in {again} s."))
            }
        };
        say(StatusCode::GATEWAY_TIMEOUT, kind, &title, reason, again, format)
    }

    /// Returns the seconds after which the client may retry. Returns `None` unless the request ran
    /// too long, because the other reasons say nothing about the load.
    fn again(&self) -> Option<u64> {
        (self.reason == Reason::RanTooLong).then(|| whole_seconds(self.retry_after))
    }
}

impl Refused {
    /// Returns the 503 response to a request with this method and these header fields, in the
    /// format of [`Terminated::answer`].
    pub fn answer<B: From<Bytes>>(&self, method: &Method, head: &HeaderMap) -> Response<B> {
        self.say(RefusalFormat::of(method, head))
    }

    pub(crate) fn say<B: From<Bytes>>(&self, format: RefusalFormat) -> Response<B> {
        let again = whole_seconds(self.retry_after);
        let title = format!("The site is very busy. Please try again in {again} s.");
        say(StatusCode::SERVICE_UNAVAILABLE, BUSY, &title, self.reason.name(), Some(again), format)
    }
}

fn whole_seconds(span: Duration) -> u64 {
    (span.as_secs() + u64::from(span.subsec_nanos() > 0)).max(1)
}

fn say<B: From<Bytes>>(
    status: StatusCode,
    kind: &str,
    title: &str,
    reason: &str,
    again: Option<u64>,
    format: RefusalFormat,
) -> Response<B> {
    let (content, body) = if format.is_json {
        let again = again.map_or(String::new(), |again| format!(r#","retry-after":{again}"#));
        // No string needs escaping, because all are constants of this crate.
        let about = format!(r#""type":"{kind}","title":"{title}","status":{}"#, status.as_u16());
        let body = format!(r#"{{{about},"reason":"{reason}"{again}}}"#);
        ("application/problem+json", body)
    } else {
        ("text/plain; charset=utf-8", format!("{title} ({reason})\n"))
    };
    let length = body.len();
    let body = if format.has_body { Bytes::from(body) } else { Bytes::new() };
    let mut response = Response::new(B::from(body));
    *response.status_mut() = status;
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    head.insert(CONTENT_LENGTH, HeaderValue::from(length));
    head.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(again) = again {
        head.insert(RETRY_AFTER, HeaderValue::from(again));
    }
    response
}
