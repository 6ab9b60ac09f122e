//! Converts messages that arrived over HTTP/2, and fields for sending over HTTP/2 (RFC 9113 §8).
//!
//! The `h2` crate has already checked frames and pseudo-fields. This module checks what a gateway
//! must check before it forwards a message as HTTP/1 (RFC 9113 §10.3), so that the same rules hold
//! for both versions.

use http::header::COOKIE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, request, response};

use crate::character_class::{is_space, is_value, trimmed};
use crate::connection::HOP_BY_HOP;
use crate::fields::Fields;
use crate::framing::{self, Framing};
use crate::head::{Limits, MAX_METHOD};
use crate::host;
use crate::name::{Name, is_alias};
use crate::parse_error::ParseError;
use crate::request::{Request, expects_continue, takes_trailers};
use crate::response::Response;
use crate::target::Target;

/// The fields that belong to an HTTP/1 connection and make an HTTP/2 message malformed (RFC 9113
/// §8.2.2).
const FOREIGN: u64 = HOP_BY_HOP & !Name::set(&[Name::Te, Name::Http2Settings]);

impl Request {
    /// Converts an HTTP/2 request. `ends` is true if no body follows the head.
    pub fn from_h2(parts: request::Parts, ends: bool, limits: &Limits) -> Result<Self, ParseError> {
        let (method, uri) = (parts.method, parts.uri);
        if method == Method::CONNECT {
            return Err(ParseError::Method);
        }
        if method.as_str().len() > MAX_METHOD
            || !matches!(uri.scheme_str(), None | Some("http" | "https"))
        {
            return Err(ParseError::Syntax);
        }
        let raw = uri.path_and_query().map_or("", |target| target.as_str());
        if raw.len() > limits.target {
            return Err(ParseError::UriTooLong);
        }
        // RFC 9113 §8.3.1 allows a path that begins with a slash, or an asterisk. It does not allow
        // the absolute form.
        let (target, None) = Target::of(&method, raw.as_bytes())? else {
            return Err(ParseError::Syntax);
        };
        let mut fields = received(&parts.headers, limits)?;
        let named = uri.authority().map(|authority| authority.as_str().as_bytes());
        let authority = host::authority_of_h2(&mut fields, named)?;
        let framing = match length(&mut fields, ends)? {
            None if ends => Framing::None,
            None => Framing::Chunked,
            Some(length) => Framing::Length(length),
        };
        Ok(Self {
            keep_alive: true,
            expects_continue: expects_continue(&fields, framing)?,
            upgrades: false,
            takes_trailers: takes_trailers(&fields),
            method,
            target,
            version: Version::HTTP_2,
            fields,
            framing,
            authority,
        })
    }
}

impl Response {
    /// Converts an HTTP/2 response to a request with the method `asked`. `ends` is true if no body
    /// follows the head.
    pub fn from_h2(
        parts: response::Parts,
        asked: &Method,
        ends: bool,
        limits: &Limits,
    ) -> Result<Self, ParseError> {
        let response::Parts { status, headers, .. } = parts;
        if status.as_u16() >= 600 {
            return Err(ParseError::Syntax);
        }
        let mut fields = received(&headers, limits)?;
        let framing = if framing::never_has_a_length(status) {
            fields.remove(Name::ContentLength);
            Framing::None
        } else if framing::has_no_body(status, asked) {
            framing::length(&fields)?;
            Framing::None
        } else {
            match length(&mut fields, ends)? {
                None if ends => Framing::Length(0),
                None => Framing::Chunked,
                Some(length) => Framing::Length(length),
            }
        };
        let version = Version::HTTP_2;
        let (reason, keep_alive, doubtful) = (Vec::new(), true, false);
        Ok(Self { status, reason, version, fields, framing, keep_alive, doubtful })
    }
}

/// Removes the announced length from the fields and returns it. Fails if no body follows and the
/// length is above 0.
fn length(fields: &mut Fields, ends: bool) -> Result<Option<u64>, ParseError> {
    let length = framing::length(fields)?;
    fields.remove(Name::ContentLength);
    if ends && length.unwrap_or(0) > 0 { Err(ParseError::Framing) } else { Ok(length) }
}

/// Converts the fields of an HTTP/2 message. Fails if they are malformed (RFC 9113 §8.2) or exceed
/// the limits.
fn received(headers: &HeaderMap, limits: &Limits) -> Result<Fields, ParseError> {
    // A client may split one cookie field, so that each part is compressed by itself (§8.2.3).
    let more_cookies = headers.get_all(COOKIE).iter().skip(1).count();
    let fits = length_in_http1(headers) <= limits.bytes.min(u32::MAX as usize / 2);
    if headers.len() - more_cookies > limits.fields || !fits {
        return Err(ParseError::HeadTooLarge);
    }
    for (name, value) in headers {
        check(name.as_str().as_bytes(), value.as_bytes())?;
    }
    let fields = Fields::from_header_map(headers);
    let alone = |value: &[u8]| value.eq_ignore_ascii_case(b"trailers");
    let fine = !fields.has_any(FOREIGN) && fields.all(Name::Te).all(alone);
    if fine { Ok(fields) } else { Err(ParseError::Syntax) }
}

/// Checks a field against RFC 9113 §8.2.1. Also refuses aliases of the fields that frame a message.
fn check(name: &[u8], value: &[u8]) -> Result<(), ParseError> {
    let padded = [value.first(), value.last()].iter().flatten().any(|byte| is_space(**byte));
    if padded || !is_value(value) {
        return Err(ParseError::Syntax);
    }
    let frames = || matches!(Name::of(name), Name::ContentLength | Name::TransferEncoding);
    if is_alias(name) && frames() { Err(ParseError::Framing) } else { Ok(()) }
}

/// Returns the length of the fields as lines of HTTP/1, in bytes.
fn length_in_http1(headers: &HeaderMap) -> usize {
    let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
    headers.iter().map(line).sum()
}

impl Fields {
    /// Converts the fields for HTTP/2, with names in lower case. Hop-by-hop fields must already be
    /// removed.
    pub fn to_header_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::try_with_capacity(self.len()).unwrap_or_default();
        for field in self.iter() {
            let name = HeaderName::from_bytes(field.spelled);
            let value = HeaderValue::from_bytes(field.value);
            // Both conversions succeed because a parser has accepted the field. Appending fails
            // only if the limits exceed those of `http`: 32768 fields, and 64 KiB for a name.
            if let (Ok(name), Ok(value)) = (name, value) {
                let _ = headers.try_append(name, value);
            }
        }
        headers
    }

    /// Converts fields that arrived over HTTP/2. Cookie fields, which HTTP/2 may split, become one
    /// field again (RFC 9113 §8.2.3). Space around a value is removed, because in HTTP/1 it would
    /// be indistinguishable from optional whitespace.
    pub fn from_header_map(headers: &HeaderMap) -> Self {
        let mut fields = Self::with_capacity(length_in_http1(headers), headers.len());
        for name in headers.keys() {
            if *name == http::header::COOKIE {
                let crumbs: Vec<&[u8]> =
                    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
                fields.push(b"cookie", trimmed(&crumbs.join(&b"; "[..])));
                continue;
            }
            for value in headers.get_all(name) {
                fields.push(name.as_str().as_bytes(), trimmed(value.as_bytes()));
            }
        }
        fields
    }
}
