//! Determines where a message ends (RFC 9112 §6).
//!
//! Two recipients that disagree about the end of a message can be made to see different messages in
//! the same bytes. Therefore any framing that is not stated exactly once and unambiguously is
//! refused. The framing fields are removed after they are read, and the writer of the message
//! generates them again.

use http::{Method, StatusCode, Version};

use crate::fields::Fields;
use crate::name::Name;
use crate::parse_error::ParseError;

/// The way in which the end of a body is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// The body has this number of bytes.
    Length(u64),
    /// The body ends with the last chunk.
    Chunked,
    /// The body ends with the connection. Only a response can end in this way.
    UntilClose,
}

/// The maximum length of a body in bytes. Longer bodies are refused, because some recipients store
/// the length in a signed number.
const MAX_LENGTH: u64 = i64::MAX as u64;

/// The framing that a message's header fields declare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Declared {
    Nothing,
    Length(u64),
    Chunked,
}

/// Determines the framing of a request, and removes its framing fields. A request without framing
/// fields has no body (RFC 9112 §6.3 item 7).
pub(crate) fn of_request(fields: &mut Fields, version: Version) -> Result<Framing, ParseError> {
    let declared = declared(fields, version)?;
    fields.remove_all(FRAMING);
    Ok(match declared {
        Declared::Nothing => Framing::None,
        Declared::Length(length) => Framing::Length(length),
        Declared::Chunked => Framing::Chunked,
    })
}

/// Determines the framing of a response (RFC 9112 §6.3), and removes its framing fields. `asked` is
/// the method of the request.
pub(crate) fn of_response(
    fields: &mut Fields,
    version: Version,
    status: StatusCode,
    asked: &Method,
) -> Result<Framing, ParseError> {
    if never_has_a_length(status) {
        // Such a response must have neither a transfer coding (RFC 9112 §6.1) nor a length (§6.2).
        // Many servers send a length of 0, which is harmless.
        let coded = fields.has(Name::TransferEncoding);
        fields.remove_all(FRAMING);
        return if coded { Err(ParseError::Framing) } else { Ok(Framing::None) };
    }
    let declared = declared(fields, version)?;
    if has_no_body(status, asked) {
        // The length is that of the response to a GET (RFC 9110 §8.6). It is useful to the client,
        // so it stays.
        fields.remove(Name::TransferEncoding);
        return Ok(Framing::None);
    }
    fields.remove_all(FRAMING);
    Ok(match declared {
        Declared::Nothing => Framing::UntilClose,
        Declared::Length(length) => Framing::Length(length),
        Declared::Chunked => Framing::Chunked,
    })
}

pub(crate) const FRAMING: u64 = Name::set(&[Name::ContentLength, Name::TransferEncoding]);

/// Returns whether the head announces a body. The announced body may be the one that only the
/// response to a GET would have.
pub(crate) fn announces_body(fields: &Fields) -> bool {
    fields.has(Name::TransferEncoding) || fields.all(Name::ContentLength).any(|value| value != b"0")
}

/// Returns whether a response with this status carries no `Content-Length` (RFC 9110 §8.6).
pub(crate) fn never_has_a_length(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT
}

/// Returns whether a response with this status to the method `asked` has no body (RFC 9112 §6.3
/// item 1).
pub(crate) fn has_no_body(status: StatusCode, asked: &Method) -> bool {
    never_has_a_length(status) || status == StatusCode::NOT_MODIFIED || *asked == Method::HEAD
}

fn declared(fields: &Fields, version: Version) -> Result<Declared, ParseError> {
    if !fields.has_any(FRAMING) {
        return Ok(Declared::Nothing);
    }
    if !fields.has(Name::TransferEncoding) {
        return length(fields).map(|length| length.map_or(Declared::Nothing, Declared::Length));
    }
    let mut codings = fields.all(Name::TransferEncoding);
    let chunked = codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
    let alone = codings.next().is_none() && !fields.has(Name::ContentLength);
    let allowed = chunked && alone && version != Version::HTTP_10;
    if allowed { Ok(Declared::Chunked) } else { Err(ParseError::Framing) }
}

/// Returns the `Content-Length`. Fails if the field is repeated or malformed.
pub(crate) fn length(fields: &Fields) -> Result<Option<u64>, ParseError> {
    let mut lengths = fields.all(Name::ContentLength);
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => number(value).map(Some).ok_or(ParseError::Framing),
        (Some(_), Some(_)) => Err(ParseError::Framing),
    }
}

/// Parses a number that consists of digits only (RFC 9110 §8.6).
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let next = |number: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    digits.iter().try_fold(0, next).filter(|number| *number <= MAX_LENGTH)
}
