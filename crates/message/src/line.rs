//! Parses the lines of a head: the first line, and one line for each field.
//!
//! A field line is `name ":" OWS value OWS CR LF` (RFC 9112 §5). Space before the colon (§5.1),
//! folded lines (§5.2) and a bare CR or LF (§2.2) are refused.

use memchr::memchr;

use crate::character_class::{is_token, is_value, trimmed};
use crate::fields::{Fields, Line};
use crate::head::Limits;
use crate::name::{Name, is_alias};
use crate::parse_error::ParseError;

/// Splits a head into its first line, without the line end, and its field lines, with their line
/// ends. The head must end with its blank line.
pub(crate) fn first(head: &[u8]) -> Result<(&[u8], &[u8]), ParseError> {
    let (line, rest) = cut(head).ok_or(ParseError::Syntax)?;
    let section = rest.strip_suffix(b"\r\n").ok_or(ParseError::Syntax)?;
    Ok((line, section))
}

/// Splits the bytes at the first CR LF. Returns `None` if a bare CR comes first.
fn cut(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b'\r', bytes)?;
    let (line, rest) = bytes.split_at(end);
    Some((line, rest.strip_prefix(b"\r\n")?))
}

/// Parses the lines of a field section. Each line has its line end, and the section has no blank
/// line.
pub(crate) fn fields(section: &[u8], limits: &Limits) -> Result<Fields, ParseError> {
    if section.len() > limits.bytes.min(u32::MAX as usize) {
        return Err(ParseError::HeadTooLarge);
    }
    let mut fields = Fields::over(section);
    let mut rest = section;
    while !rest.is_empty() {
        let (line, behind) = line(rest, section.len() - rest.len())?;
        if fields.len() == limits.fields {
            return Err(ParseError::HeadTooLarge);
        }
        fields.add(line);
        rest = behind;
    }
    Ok(fields)
}

/// Parses the field line at the start of `rest`, which begins `start` bytes into the section.
/// Returns the line and the bytes after it.
fn line(rest: &[u8], start: usize) -> Result<(Line, &[u8]), ParseError> {
    let colon = rest.iter().position(|byte| !is_token(*byte)).ok_or(ParseError::Syntax)?;
    let (spelled, after) = rest.split_at(colon);
    let after = after.strip_prefix(b":").ok_or(ParseError::Syntax)?;
    let (raw, behind) = cut(after).ok_or(ParseError::Syntax)?;
    let value = trimmed(raw);
    if spelled.is_empty() || !is_value(value) {
        return Err(ParseError::Syntax);
    }
    let name = Name::of(spelled);
    if matches!(name, Name::ContentLength | Name::TransferEncoding) && is_alias(spelled) {
        return Err(ParseError::Framing);
    }
    let line = Line {
        start: start as u32,
        name_length: colon as u32,
        value: (start + colon + 1 + leading(raw, value)) as u32,
        value_length: value.len() as u32,
        name,
        plain: raw.len() == value.len() + 1 && raw.first() == Some(&b' '),
    };
    Ok((line, behind))
}

/// Returns the number of bytes of `raw` that were trimmed before `value`.
fn leading(raw: &[u8], value: &[u8]) -> usize {
    if value.is_empty() {
        return raw.len();
    }
    raw.iter().position(|byte| *byte != b' ' && *byte != b'\t').unwrap_or(0)
}
