//! Responses, as both applications write them.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

use crate::Body;

/// A page.
pub const HTML: &str = "text/html; charset=utf-8";
/// Statistics, and what programs read.
pub const JSON: &str = "application/json";
/// One line for a person.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// One line of text.
pub fn text(status: StatusCode, line: &str) -> Response<Body> {
    respond(status, TEXT, format!("{line}\n"))
}

/// A whole response.
pub fn respond(status: StatusCode, kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    add(&mut response, CONTENT_TYPE, kind);
    // Every page belongs to one session, and a cache would take load off the experiment.
    add(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// Adds a header whose value we wrote ourselves; one that HTTP cannot carry is left out.
pub fn add(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
