//! Creates HTTP responses, in the same way for all applications.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

/// The body of a response, which is complete before it is written.
pub type Body = Full<Bytes>;

/// The content type of a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// The content type of statistics, and of other responses to programs.
pub const JSON: &str = "application/json";
/// The content type of a single line for a person.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// Returns a response whose body is one line of text.
pub fn text(status: StatusCode, line: &str) -> Response<Body> {
    respond(status, TEXT, format!("{line}\n"))
}

/// Returns a response with the content type `kind` and a complete body.
pub fn respond(status: StatusCode, kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    add(&mut response, CONTENT_TYPE, kind);
    // Every page belongs to one session. A cache would also take load away from the experiment.
    add(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// Adds a header whose value this program wrote. Omits the header if HTTP cannot carry the value.
pub fn add(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
