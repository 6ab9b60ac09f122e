//! Where a message ends (RFC 9112 §6).
//!
//! Two readers who disagree about that can be made to see different messages in the same bytes, so
//! everything that is not said once and plainly is refused. What was said is taken out of the
//! fields: whoever writes the message says it anew.

use http::{Method, StatusCode, Version};

use crate::fault::Fault;
use crate::fields::Fields;
use crate::name::Name;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes.
    Length(u64),
    /// The last chunk.
    Chunked,
    /// The end of the connection. Only answers have such an end.
    UntilClose,
}

/// Longer bodies are refused: some readers count in signed numbers.
const MAX_LENGTH: u64 = i64::MAX as u64;

/// What the fields say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Length(u64),
    Chunked,
}

/// Of a request: without a word on it there is no body (RFC 9112 §6.3 item 7).
pub(crate) fn of_request(fields: &mut Fields, version: Version) -> Result<Framing, Fault> {
    let said = said(fields, version)?;
    fields.remove_all(FRAMING);
    Ok(match said {
        Said::Nothing => Framing::None,
        Said::Length(length) => Framing::Length(length),
        Said::Chunked => Framing::Chunked,
    })
}

/// Of an answer (RFC 9112 §6.3).
pub(crate) fn of_response(
    fields: &mut Fields,
    version: Version,
    status: StatusCode,
    asked: &Method,
) -> Result<Framing, Fault> {
    if never_has_a_length(status) {
        // RFC 9112 §6.1: no transfer coding. §6.2: no length; many send `0`, which says the same.
        let coded = fields.has(Name::TransferEncoding);
        fields.remove_all(FRAMING);
        return if coded { Err(Fault::Framing) } else { Ok(Framing::None) };
    }
    let said = said(fields, version)?;
    if has_no_body(status, asked) {
        // The length is that of the answer to a GET (RFC 9110 §8.6), of use to the client.
        fields.remove(Name::TransferEncoding);
        return Ok(Framing::None);
    }
    fields.remove_all(FRAMING);
    Ok(match said {
        Said::Nothing => Framing::UntilClose,
        Said::Length(length) => Framing::Length(length),
        Said::Chunked => Framing::Chunked,
    })
}

pub(crate) const FRAMING: u64 = Name::set(&[Name::ContentLength, Name::TransferEncoding]);

/// Whether the head speaks of a body, and be it that of another answer.
pub(crate) fn announces_body(fields: &Fields) -> bool {
    fields.has(Name::TransferEncoding) || fields.all(Name::ContentLength).any(|value| value != b"0")
}

/// RFC 9110 §8.6: such answers carry no `Content-Length`.
pub(crate) fn never_has_a_length(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT
}

/// RFC 9112 §6.3 item 1.
pub(crate) fn has_no_body(status: StatusCode, asked: &Method) -> bool {
    never_has_a_length(status) || status == StatusCode::NOT_MODIFIED || *asked == Method::HEAD
}

fn said(fields: &Fields, version: Version) -> Result<Said, Fault> {
    if !fields.has_any(FRAMING) {
        return Ok(Said::Nothing);
    }
    if !fields.has(Name::TransferEncoding) {
        return length(fields).map(|length| length.map_or(Said::Nothing, Said::Length));
    }
    let mut codings = fields.all(Name::TransferEncoding);
    let chunked = codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
    let alone = codings.next().is_none() && !fields.has(Name::ContentLength);
    let allowed = chunked && alone && version != Version::HTTP_10;
    if allowed { Ok(Said::Chunked) } else { Err(Fault::Framing) }
}

/// The one `Content-Length`, if there is any.
pub(crate) fn length(fields: &Fields) -> Result<Option<u64>, Fault> {
    let mut lengths = fields.all(Name::ContentLength);
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => number(value).map(Some).ok_or(Fault::Framing),
        (Some(_), Some(_)) => Err(Fault::Framing),
    }
}

/// Digits, and nothing else (RFC 9110 §8.6).
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
