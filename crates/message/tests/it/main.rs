//! Tests of each rule, with the section of its RFC, and of properties that hold for any bytes.
#![allow(missing_docs, reason = "a test's name is what it says")]
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]

mod bodies;
mod fields;
mod forwarded;
mod framing;
mod heads;
mod hops;
mod hosts;
mod http2;
mod made;
mod paths;
mod properties;
mod requests;
mod responses;
mod written;

use bywash_message::{Fields, Limits, ParseError, Request, Response};

/// The default limits of the gateway.
pub(crate) const LIMITS: Limits = Limits { target: 8 * 1024, fields: 100, bytes: 16 * 1024 };

pub(crate) fn request(head: impl AsRef<[u8]>) -> Result<Request, ParseError> {
    Request::parse(head.as_ref(), &LIMITS)
}

/// Parses a request for `/` with a `Host` and these lines, each with its line end.
pub(crate) fn with(lines: &str) -> Result<Request, ParseError> {
    request(format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
}

/// Parses a request in HTTP/1.0 for `/` with a `Host` and these lines, each with its line end.
pub(crate) fn old_with(lines: &str) -> Result<Request, ParseError> {
    request(format!("GET / HTTP/1.0\r\nHost: a\r\n{lines}\r\n"))
}

/// Parses a response to a GET with these lines.
pub(crate) fn answer(status: &str, lines: &str) -> Result<Response, ParseError> {
    answer_to(&http::Method::GET, status, lines)
}

pub(crate) fn answer_to(
    asked: &http::Method,
    status: &str,
    lines: &str,
) -> Result<Response, ParseError> {
    Response::parse(format!("HTTP/1.1 {status}\r\n{lines}\r\n").as_bytes(), asked, &LIMITS)
}

/// Lists every field as `name: value`.
pub(crate) fn listed(fields: &Fields) -> Vec<String> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    fields.iter().map(|field| format!("{}: {}", text(field.spelled), text(field.value))).collect()
}
