//! A request as a gateway may accept it from a client that speaks HTTP/1.

use http::{Method, Version};
use memchr::memchr;

use crate::connection::Options;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::framing::{self, Framing};
use crate::head::{Limits, MAX_METHOD};
use crate::name::Name;
use crate::octet::{is_token, members, trimmed};
use crate::target::Target;
use crate::{host, line};

/// A request without its body.
#[allow(clippy::struct_excessive_bools, reason = "each answers one question about the connection")]
#[derive(Clone, Debug)]
pub struct Request {
    /// Any but `CONNECT`.
    pub method: Method,
    /// Where it goes.
    pub target: Target,
    /// 1.0, 1.1 or 2.
    pub version: Version,
    /// All but those that frame the body. `Host` is there once, or not at all in HTTP/1.0.
    pub fields: Fields,
    /// How the body ends.
    pub framing: Framing,
    /// Whom it is for, as sent: the value of `Host`.
    pub authority: Box<[u8]>,
    /// Whether the client may send another one behind it.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether the client asks for another protocol on this connection, of those that can be
    /// carried through: not another HTTP, not TLS.
    pub upgrades: bool,
    /// Whether the client can take trailers.
    pub takes_trailers: bool,
}

impl Request {
    /// Parses a whole head: what [`Head::end`](crate::Head::end) has found.
    pub fn parse(head: &[u8], limits: &Limits) -> Result<Self, Fault> {
        let head = head.strip_prefix(b"\r\n").unwrap_or(head);
        let (first, section) = line::first(head)?;
        let (method, raw, version) = request_line(first)?;
        if raw.len() > limits.target {
            return Err(Fault::UriTooLong);
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

/// `method SP request-target SP HTTP-version` (RFC 9112 §3).
fn request_line(line: &[u8]) -> Result<(Method, &[u8], Version), Fault> {
    let (method, rest) = word(line).ok_or(Fault::Syntax)?;
    let (target, rest) = word(rest).ok_or(Fault::Syntax)?;
    let version = version(rest)?;
    if method.len() > MAX_METHOD || !method.iter().all(|byte| is_token(*byte)) {
        return Err(Fault::Syntax);
    }
    let method = Method::from_bytes(method).map_err(|_| Fault::Syntax)?;
    if method == Method::CONNECT { Err(Fault::Method) } else { Ok((method, target, version)) }
}

/// What is before the first space, and what is behind it.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b' ', line).filter(|end| *end > 0)?;
    Some((&line[..end], &line[end + 1..]))
}

/// RFC 9112 §2.3: in capitals, one digit on each side of the dot.
pub(crate) fn version(text: &[u8]) -> Result<Version, Fault> {
    match text {
        b"HTTP/1.1" => Ok(Version::HTTP_11),
        b"HTTP/1.0" => Ok(Version::HTTP_10),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(Fault::Version)
        }
        _ => Err(Fault::Syntax),
    }
}

/// RFC 9110 §10.1.1: there is one expectation, and one that nobody can meet is refused. Without a
/// body there is nothing to wait for.
pub(crate) fn expects_continue(fields: &Fields, framing: Framing) -> Result<bool, Fault> {
    if !fields.has(Name::Expect) {
        return Ok(false);
    }
    let other = |value: &[u8]| !value.eq_ignore_ascii_case(b"100-continue");
    if fields.all(Name::Expect).any(other) {
        return Err(Fault::Expectation);
    }
    Ok(!matches!(framing, Framing::None | Framing::Length(0)))
}

/// RFC 9110 §10.1.4.
pub(crate) fn takes_trailers(fields: &Fields) -> bool {
    let mut codings = fields.all(Name::Te).flat_map(members);
    codings.any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
}

/// Whether the protocols of `Upgrade` can be carried through a gateway that does not speak them.
/// HTTP/2 would be, and whatever is in it would pass unseen.
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
