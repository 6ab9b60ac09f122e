//! A request as a gateway may accept it from a client that speaks HTTP/1.

use http::{Method, Version};
use memchr::memchr;

use crate::character_class::{is_token, members, trimmed};
use crate::connection::Options;
use crate::fields::Fields;
use crate::framing::{self, Framing};
use crate::head::{Limits, MAX_METHOD};
use crate::name::Name;
use crate::parse_error::ParseError;
use crate::target::Target;
use crate::{host, line};

/// A request without the content of its body.
#[allow(clippy::struct_excessive_bools, reason = "each answers one question about the connection")]
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, which is never `CONNECT`.
    pub method: Method,
    /// The target, in canonical form.
    pub target: Target,
    /// The version: 1.0, 1.1 or 2.
    pub version: Version,
    /// All fields except those that frame the body. `Host` occurs once. It may be missing in
    /// HTTP/1.0.
    pub fields: Fields,
    /// The way in which the end of the body is recognised.
    pub framing: Framing,
    /// The authority as the client sent it: the value of `Host`.
    pub authority: Box<[u8]>,
    /// Whether the client may send another request after this one.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether the client asks for another protocol on this connection, and the gateway can tunnel
    /// it. Other versions of HTTP, and TLS, cannot be tunnelled.
    pub upgrades: bool,
    /// Whether the client accepts trailers.
    pub takes_trailers: bool,
}

impl Request {
    /// Parses a whole head, which [`Head::end`](crate::Head::end) has found.
    ///
    /// # Errors
    /// Returns the reason why the request is refused.
    pub fn parse(head: &[u8], limits: &Limits) -> Result<Self, ParseError> {
        let head = head.strip_prefix(b"\r\n").unwrap_or(head);
        let (first, section) = line::first(head)?;
        let (method, raw, version) = request_line(first)?;
        if raw.len() > limits.target {
            return Err(ParseError::UriTooLong);
        }
        let (target, named) = Target::of(&method, raw)?;
        let mut fields = line::fields(section, limits)?;
        let authority = host::authority(&mut fields, named, version != Version::HTTP_10)?;
        let framing = framing::of_request(&mut fields, version)?;
        let options = Options::of_request(&fields)?;
        let modern = version != Version::HTTP_10;
        Ok(Self {
            keep_alive: options.persists(version),
            expects_continue: modern && expects_continue(&fields, framing)?,
            upgrades: modern && options.upgrade && framing == Framing::None && is_carried(&fields),
            takes_trailers: options.te && takes_trailers(&fields),
            method,
            target,
            version,
            fields,
            framing,
            authority,
        })
    }
}

/// Parses `method SP request-target SP HTTP-version` (RFC 9112 §3).
fn request_line(line: &[u8]) -> Result<(Method, &[u8], Version), ParseError> {
    let (method, rest) = word(line).ok_or(ParseError::Syntax)?;
    let (target, rest) = word(rest).ok_or(ParseError::Syntax)?;
    let version = version(rest)?;
    if method.len() > MAX_METHOD || !method.iter().all(|byte| is_token(*byte)) {
        return Err(ParseError::Syntax);
    }
    let method = Method::from_bytes(method).map_err(|_| ParseError::Syntax)?;
    if method == Method::CONNECT { Err(ParseError::Method) } else { Ok((method, target, version)) }
}

/// Splits a line at the first space. Returns `None` if it has none.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b' ', line).filter(|end| *end > 0)?;
    Some((&line[..end], &line[end + 1..]))
}

/// Parses an HTTP version: `HTTP/` in capitals, and one digit on each side of the dot (RFC 9112
/// §2.3).
pub(crate) fn version(text: &[u8]) -> Result<Version, ParseError> {
    match text {
        b"HTTP/1.1" => Ok(Version::HTTP_11),
        b"HTTP/1.0" => Ok(Version::HTTP_10),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(ParseError::Version)
        }
        _ => Err(ParseError::Syntax),
    }
}

/// Returns whether the client waits for `100 Continue` (RFC 9110 §10.1.1). Without a body it does
/// not wait. Fails for any other expectation, because the gateway cannot meet it.
pub(crate) fn expects_continue(fields: &Fields, framing: Framing) -> Result<bool, ParseError> {
    if !fields.has(Name::Expect) {
        return Ok(false);
    }
    let other = |value: &[u8]| !value.eq_ignore_ascii_case(b"100-continue");
    if fields.all(Name::Expect).any(other) {
        return Err(ParseError::Expectation);
    }
    Ok(!matches!(framing, Framing::None | Framing::Length(0)))
}

/// Returns whether the field `TE` says that the sender accepts trailers (RFC 9110 §10.1.4).
pub(crate) fn takes_trailers(fields: &Fields) -> bool {
    let mut codings = fields.all(Name::Te).flat_map(members);
    codings.any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
}

/// Returns whether the gateway can tunnel the protocols of `Upgrade` without speaking them. It
/// could tunnel HTTP/2 too, but the requests inside would bypass the gateway.
fn is_carried(fields: &Fields) -> bool {
    let mut any = false;
    let spoken = |protocol: &[u8]| {
        let name = protocol.split(|byte| *byte == b'/').next().map(trimmed).unwrap_or_default();
        [&b"http"[..], b"h2", b"h2c", b"h3", b"tls"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    };
    let fine = fields.all(Name::Upgrade).flat_map(members).filter(|name| !name.is_empty()).all(
        |protocol| {
            any = true;
            !spoken(protocol)
        },
    );
    fine && any
}
