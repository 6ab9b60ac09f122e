//! The reflection of a request: an origin's report of how it understood the request.
//!
//! A reflection is JSON with the keys `method`, `target`, `host`, `route` and `body`. The body is
//! written in hexadecimal digits, and the other values with one character per byte. `null` means
//! that the origin does not report the value. The reflection is in the body of the answer, or for
//! HEAD in the header field `Reflection`.

use super::answers::Answer;
use super::reading::Request;
use serde_json::{Value, json};

/// The reflection of one request. A value is `None` if the origin does not report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedRequest {
    /// Method as the origin received it.
    pub method: Option<Vec<u8>>,
    /// Target as the origin received it, without decoding.
    pub target: Option<Vec<u8>>,
    /// Host without surrounding blanks.
    pub host: Option<Vec<u8>>,
    /// Path that the origin used for routing.
    pub route: Option<Vec<u8>>,
    /// Body without framing.
    pub body: Option<Vec<u8>>,
}

impl ObservedRequest {
    /// Returns the reflection in `answer`; `None` if the answer contains none.
    pub fn of(answer: &Answer) -> Option<Self> {
        let text = answer.field("reflection").unwrap_or(&answer.body);
        let value: Value = serde_json::from_slice(text).ok()?;
        let part = |name: &str| value.get(name)?.as_str().and_then(bytes);
        Some(Self {
            method: Some(part("method")?),
            target: part("target"),
            host: part("host"),
            route: part("route").filter(|route| !route.is_empty()),
            body: value.get("body")?.as_str().and_then(unhex),
        })
    }

    /// Returns the reflection that an origin should report for a request that the reference has
    /// read.
    pub fn json(request: &Request) -> Value {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
        let hex: String =
            request.body.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        json!({
            "method": latin(&request.method),
            "target": latin(&request.target),
            "host": request.all("host").next().map(latin),
            "route": request.all("route").next().map(latin),
            "body": hex,
        })
    }

    /// Describes the first difference between the reflection and `request`; `None` if there is
    /// none. Values that the origin does not report are not compared.
    pub fn differs(&self, request: &Request) -> Option<String> {
        let differ = |what: &str, observed: &[u8], is: &[u8]| {
            let (observed, is) = (excerpt(observed), excerpt(is));
            Some(format!("{what} is `{is}`, the origin sees `{observed}`"))
        };
        let target = self.target.as_deref();
        let unlike = |is: &[u8]| target.is_some_and(|observed| plain(observed) != plain(is));
        let method = self.method.as_deref().unwrap_or_default();
        if method != request.method {
            return differ("method", method, &request.method);
        }
        // An origin may report an absolute target unchanged, or as path and query.
        if unlike(&request.target) && unlike(request.path_and_query()) {
            return differ("target", target.unwrap_or_default(), &request.target);
        }
        let host = request.host().unwrap_or_default();
        if self.host.as_deref().unwrap_or_default() != host {
            return differ("host", self.host.as_deref().unwrap_or_default(), &host);
        }
        if let Some(observed) = self.route.as_deref()
            && !same_route(observed, &request.target)
        {
            return differ("path", observed, &request.target);
        }
        match &self.body {
            Some(body) if *body != request.body => differ("body", body, &request.body),
            _ => None,
        }
    }
}

/// Normalizes a target: removes an empty query as ASGI does, and merges consecutive slashes as
/// Apache does.
fn plain(target: &[u8]) -> Vec<u8> {
    single_slashes(target.strip_suffix(b"?").unwrap_or(target))
}

/// Returns whether an origin's route is the decoded path of `target`. Consecutive slashes count as
/// one, because nginx merges them. Paths with bytes that are not ASCII count as equal, because
/// origins decode them differently.
fn same_route(observed: &[u8], target: &[u8]) -> bool {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let route = single_slashes(&decoded(path));
    !path.starts_with(b"/") || !route.is_ascii() || single_slashes(observed) == route
}

/// Decodes the percent encodings of `path` once.
pub fn decoded(path: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::new(), path);
    while let Some((first, behind)) = rest.split_first() {
        let two = behind.get(..2).and_then(|two| str::from_utf8(two).ok());
        let byte = two.filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = byte.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%');
        plain.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    plain
}

/// Merges each run of slashes into one slash.
pub fn single_slashes(path: &[u8]) -> Vec<u8> {
    let mut single = path.to_vec();
    single.dedup_by(|this, before| *this == b'/' && *before == b'/');
    single
}

/// Returns `bytes` as text with one character per byte.
pub fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Returns `value` as JSON text in which characters that are not ASCII are escaped. All characters
/// of `value` must be below 256.
pub fn ascii(value: &Value) -> String {
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        c => format!("\\u{:04x}", u32::from(c)),
    };
    value.to_string().chars().map(escape).collect()
}

/// Returns a readable excerpt of `bytes` with limited length, for a report.
pub fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 120;
    let shown = bytes.get(..LONGEST).unwrap_or(bytes).escape_ascii();
    let more = bytes.len().saturating_sub(LONGEST);
    if more == 0 { shown.to_string() } else { format!("{shown}… and {more} bytes more") }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(c).ok()).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|two| str::from_utf8(two).ok());
    pairs.map(|two| u8::from_str_radix(two?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::answers::{self, Next};
    use super::super::reading::{self, Speaker};
    use super::*;

    fn request(text: &str) -> Request {
        reading::read(text.as_bytes(), Speaker::Client).requests.remove(0)
    }

    fn observed(request: &Request) -> ObservedRequest {
        let body = ascii(&ObservedRequest::json(request));
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        match answers::next(answer.as_bytes(), false, false) {
            Next::Whole(answer, _) => ObservedRequest::of(&answer).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_reflection_of_the_same_request_does_not_differ() {
        let post = "POST /a%20b?x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\u{e9}";
        assert_eq!(observed(&request(post)).differs(&request(post)), None);
    }

    #[test]
    fn whatever_is_understood_otherwise_is_found() {
        let is = request("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        for (other, what) in [
            ("PUT /a HTTP/1.1\r\nHost: a\r\n\r\n", "method"),
            ("GET /b HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
            ("GET /a HTTP/1.1\r\nHost: b\r\n\r\n", "host"),
            ("GET /a HTTP/1.1\r\nHost: a\r\nRoute: /b\r\n\r\n", "path"),
            ("GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", "body"),
        ] {
            let difference = observed(&request(other)).differs(&is).unwrap();
            assert!(difference.starts_with(what), "{difference}");
        }
    }

    #[test]
    fn a_route_is_the_path_decoded_once() {
        assert!(same_route(b"/a b/c", b"/a%20b//c?d"));
        assert!(same_route(b"/%41", b"/%2541"));
        assert!(same_route(b"/\xc3\xa9", b"/%e9"));
        assert!(!same_route(b"/b", b"/a/../b"));
        assert_eq!(decoded(b"%4%zz%41%"), b"%4%zzA%");
    }
}
