//! The first phase: is this a message that may be passed on, and whose is it?
//!
//! hyper parses and the gateway re-serialises from what it parsed, so framing is never copied.
//! Here is what hyper accepts and a gateway must not (RFC 9112 §3.2, §6.1; RFC 9110 §10.1.1).

use std::net::IpAddr;

use bywash_config::Charge;
use bywash_engine::{Request as EngineRequest, SessionKey};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Version};

use super::fields::Fields;
use crate::shared::Shared;

/// What the gateway knows of a request from its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) request: EngineRequest,
    pub(super) fields: Fields,
}

/// Why a message is refused as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No HTTP at all, or a head that is too large: hyper has refused it.
    Syntax,
    /// No `Host`, or more than one, or one that contradicts the request line.
    Host,
    /// A transfer coding other than one final `chunked`, or any in HTTP/1.0.
    Framing,
    /// `CONNECT`.
    Method,
    /// An expectation other than `100-continue`.
    Expectation,
    /// Path and query are too long.
    UriTooLong,
    /// The head is too large.
    HeadTooLarge,
    /// The body broke off, or is not framed as its head said.
    Body,
    /// `Connection` names a field that must not be removed.
    Nominated,
}

impl Fault {
    pub(crate) const ALL: [Self; 9] = [
        Self::Syntax,
        Self::Host,
        Self::Framing,
        Self::Method,
        Self::Expectation,
        Self::UriTooLong,
        Self::HeadTooLarge,
        Self::Body,
        Self::Nominated,
    ];

    /// The word for it in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Host => "host",
            Self::Framing => "framing",
            Self::Method => "method",
            Self::Expectation => "expectation",
            Self::UriTooLong => "uri_too_long",
            Self::HeadTooLarge => "head_too_large",
            Self::Body => "body",
            Self::Nominated => "nominated",
        }
    }
}

/// Checks the head of a request and finds class, session and address.
pub(crate) fn examine<B>(
    shared: &Shared,
    request: &Request<B>,
    peer: IpAddr,
) -> Result<Facts, Fault> {
    let (headers, fields) = (request.headers(), Fields::of(request.headers()));
    method(request.method())?;
    host(request, fields)?;
    if fields.transfer_encoding {
        framing(request.version(), headers)?;
    }
    if fields.expect {
        expectation(headers)?;
    }
    if fields.connection {
        nominated(headers)?;
    }
    sizes(shared, request, fields.bytes)?;
    let identify = &shared.config.identify;
    let cookie = identify.session_cookie.as_deref().filter(|_| fields.cookie);
    let session = cookie.and_then(|name| session_of(shared, name, headers));
    let address = match identify.charge {
        Charge::Session => None,
        Charge::Address => Some(shared.address_key(peer)),
    };
    let class = shared.config.classifier.class(request.method().as_str(), request.uri().path());
    Ok(Facts { request: EngineRequest { class, session, address }, fields })
}

fn method(method: &Method) -> Result<(), Fault> {
    if *method == Method::CONNECT { Err(Fault::Method) } else { Ok(()) }
}

fn host<B>(request: &Request<B>, fields: Fields) -> Result<(), Fault> {
    match fields.hosts {
        0 if request.version() == Version::HTTP_11 => Err(Fault::Host),
        0 => Ok(()),
        1 => agrees(request),
        _ => Err(Fault::Host),
    }
}

/// `Host` must look like one, and an absolute request line must name the same. A request line
/// that is nothing but an authority is for `CONNECT`.
fn agrees<B>(request: &Request<B>) -> Result<(), Fault> {
    let host = request.headers().get(header::HOST).map_or(&[][..], HeaderValue::as_bytes);
    let same = match (request.uri().authority(), request.uri().path_and_query()) {
        (Some(authority), Some(_)) => authority.as_str().as_bytes().eq_ignore_ascii_case(host),
        (None, Some(_)) => true,
        (_, None) => false,
    };
    if same && is_host(host) { Ok(()) } else { Err(Fault::Host) }
}

/// Whether these could be a name or an address, and a port (RFC 3986 §3.2.2; no user names, and of
/// the characters of a name only those in use). An empty one is allowed.
fn is_host(host: &[u8]) -> bool {
    let (name, port) = match host.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if host[at] == b':' => (&host[..at], &host[at + 1..]),
        _ => (host, &[][..]),
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(byte);
    let address = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let literal = name.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let named = literal.map_or_else(|| name.iter().all(plain), |name| name.iter().all(address));
    named && port.iter().all(u8::is_ascii_digit)
}

fn framing(version: Version, headers: &HeaderMap) -> Result<(), Fault> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    let chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    let alone = codings.next().is_none() && !headers.contains_key(header::CONTENT_LENGTH);
    if chunked && alone && version == Version::HTTP_11 { Ok(()) } else { Err(Fault::Framing) }
}

fn expectation(headers: &HeaderMap) -> Result<(), Fault> {
    let other = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    let any = headers.get_all(header::EXPECT).iter().any(other);
    if any { Err(Fault::Expectation) } else { Ok(()) }
}

/// Fields that a client must not have removed by naming them in `Connection`: those that say whom
/// the request is for, how long it is, and who it comes from.
const KEPT: [&str; 8] = [
    "host",
    "content-length",
    "cookie",
    "authorization",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "forwarded",
];

fn nominated(headers: &HeaderMap) -> Result<(), Fault> {
    let kept = |name: &[u8]| KEPT.iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name));
    let any = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|name| kept(name.trim_ascii()));
    if any { Err(Fault::Nominated) } else { Ok(()) }
}

fn sizes<B>(shared: &Shared, request: &Request<B>, bytes: usize) -> Result<(), Fault> {
    let limits = &shared.config.limits;
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > limits.max_uri_bytes {
        return Err(Fault::UriTooLong);
    }
    let too_many = request.headers().len() > limits.max_headers;
    if bytes > limits.max_header_bytes || too_many { Err(Fault::HeadTooLarge) } else { Ok(()) }
}

/// The session that a request claims: its cookie, hashed. The first of that name counts.
fn session_of(shared: &Shared, name: &str, headers: &HeaderMap) -> Option<SessionKey> {
    let mut pairs = headers
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let value = pairs.find_map(|pair| named(name, pair))?;
    Some(shared.session_key(value))
}

/// The session that an answer begins.
pub(super) fn session_begun(shared: &Shared, headers: &HeaderMap) -> Option<SessionKey> {
    let name = shared.config.identify.session_cookie.as_deref()?;
    let mut cookies = headers.get_all(header::SET_COOKIE).iter();
    let pair = |value: &'_ HeaderValue| {
        let pair = value.as_bytes().split(|byte| *byte == b';').next()?;
        named(name, pair).map(|value| shared.session_key(value))
    };
    cookies.find_map(pair)
}

/// The value of a `name=value` pair, if it is of this name and not empty.
fn named<'a>(name: &str, pair: &'a [u8]) -> Option<&'a [u8]> {
    let pair = pair.trim_ascii();
    let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    if value.is_empty() { None } else { Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri("/x");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    fn host(request: &Request<()>) -> Result<(), Fault> {
        super::host(request, Fields::of(request.headers()))
    }

    #[test]
    fn a_message_without_one_host_is_refused() {
        assert_eq!(host(&request(&[])), Err(Fault::Host));
        assert_eq!(host(&request(&[("host", "a"), ("host", "a")])), Err(Fault::Host));
        assert_eq!(host(&request(&[("host", "a")])), Ok(()));
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
        for host in ["", "a", "shop.example:80", "127.0.0.1", "[::1]", "[::1]:8080", "a_b", "a:"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in ["a b", "a/b", "u@a", "a:b", "a,b", "[::1", "::1", "[::1]x", "[a/b]", "a]"] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn an_absolute_request_line_must_agree_with_host() {
        let mut absolute = request(&[("host", "shop.example")]);
        *absolute.uri_mut() = "http://SHOP.example/x".parse().unwrap();
        assert_eq!(host(&absolute), Ok(()));
        *absolute.uri_mut() = "http://other.example/x".parse().unwrap();
        assert_eq!(host(&absolute), Err(Fault::Host));
    }

    #[test]
    fn only_one_final_chunked_is_framing() {
        let check = |fields: &[(&str, &str)], version| framing(version, request(fields).headers());
        let chunked = ("transfer-encoding", "chunked");
        assert_eq!(check(&[chunked], Version::HTTP_11), Ok(()));
        assert_eq!(check(&[chunked], Version::HTTP_10), Err(Fault::Framing));
        assert_eq!(check(&[chunked, chunked], Version::HTTP_11), Err(Fault::Framing));
        assert_eq!(
            check(&[chunked, ("content-length", "3")], Version::HTTP_11),
            Err(Fault::Framing)
        );
        for odd in ["gzip, chunked", ",chunked", "chunked, identity", "xchunked"] {
            let result = check(&[("transfer-encoding", odd)], Version::HTTP_11);
            assert_eq!(result, Err(Fault::Framing), "{odd}");
        }
    }

    #[test]
    fn fields_that_matter_cannot_be_nominated_away() {
        let check = |value| nominated(request(&[("connection", value)]).headers());
        assert_eq!(check("close, X-Hop"), Ok(()));
        assert_eq!(check("keep-alive, Cookie"), Err(Fault::Nominated));
        assert_eq!(check("content-length"), Err(Fault::Nominated));
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        assert_eq!(named("sid", b" sid=abc"), Some(b"abc".as_slice()));
        assert_eq!(named("sid", b"xsid=abc"), None);
        assert_eq!(named("sid", b"sid="), None);
        assert_eq!(named("sid", b"sidx=1"), None);
    }
}
