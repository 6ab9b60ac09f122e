//! Responses of all applications.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

/// The body of a response, complete before it is written.
pub type Body = Full<Bytes>;

/// The content type of a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// The content type of statistics, and of other responses for programs.
pub const JSON: &str = "application/json";
/// The content type of one line for a person.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// Returns a response of one line of text.
pub fn text(status: StatusCode, line: &str) -> Response<Body> {
    respond(status, TEXT, format!("{line}\n"))
}

/// Returns a complete response.
pub fn respond(status: StatusCode, kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    add(&mut response, CONTENT_TYPE, kind);
    // Every page belongs to one session, and a cache would take load off the experiment.
    add(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// Adds a header whose value this program wrote. A value that HTTP cannot carry is omitted.
pub fn add(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
