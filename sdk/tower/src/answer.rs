//! The deadline in a request's head, and the answer to who is terminated.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::token::{Reason, Terminated};

/// Milliseconds that are left to a request. Whoever sends it can only shorten his own.
pub const HEADER: &str = "bywash-deadline";

// The type of problem that the gateway names as well (draft of the IETF on RateLimit), and none (RFC 9457).
const BUSY: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
const PLAIN: &str = "about:blank";

/// The deadline that a request brings along. Anything but one number of 1 to 9 digits is none.
pub(crate) fn time_left(head: &HeaderMap) -> Option<Duration> {
    let mut values = head.get_all(HEADER).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let digits = value.as_bytes();
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |sum, digit: &u8| sum * 10 + u64::from(digit - b'0');
    Some(Duration::from_millis(digits.iter().fold(0, number)))
}

/// How to speak to one client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Voice {
    Text,
    Json,
}

impl Voice {
    pub(crate) fn of(head: &HeaderMap) -> Self {
        let accepts = |value: &HeaderValue| {
            value.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"json"))
        };
        if head.get_all(ACCEPT).iter().any(accepts) { Self::Json } else { Self::Text }
    }
}

impl Terminated {
    /// The 504 for a request with this head: problem+json (RFC 9457) if JSON is accepted, else a line of text.
    /// The layer answers so; a handler with an error handling of its own may.
    pub fn answer<B: From<Bytes>>(&self, head: &HeaderMap) -> Response<B> {
        self.say(Voice::of(head))
    }

    pub(crate) fn say<B: From<Bytes>>(&self, voice: Voice) -> Response<B> {
        let again = self.retry_after.as_secs() + u64::from(self.retry_after.subsec_nanos() > 0);
        let (again, reason) = (again.max(1), self.reason.name());
        let (kind, title) = match self.reason {
            Reason::Deadline => (PLAIN, "The time that was left to this request is over.".into()),
            Reason::RanTooLong | Reason::ClientLeft => {
                (BUSY, format!("The site is very busy. Please try again in {again} s."))
            }
        };
        let (content, body) = match voice {
            Voice::Text => ("text/plain; charset=utf-8", format!("{title} ({reason})\n")),
            // Our own words: nothing in them needs an escape.
            Voice::Json => (
                "application/problem+json",
                format!(
                    r#"{{"type":"{kind}","title":"{title}","status":504,"reason":"{reason}","retry-after":{again}}}"#
                ),
            ),
        };
        let mut response = Response::new(B::from(Bytes::from(body)));
        *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
        let head = response.headers_mut();
        head.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        head.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        head.insert(RETRY_AFTER, HeaderValue::from(again));
        response
    }
}
