//! The target of a request in one form, so that the path that is classified is the path that is
//! forwarded.
//!
//! If one path has two spellings, every check of paths can be bypassed. Therefore a path is brought
//! into the normal form of RFC 3986 §6.2.2: escapes of unreserved characters are decoded, other
//! escapes are written in upper case, and dot segments are resolved. A path is refused if one
//! recipient would see a slash or a dot segment in it and another would not. Escaped slashes and
//! backslashes, `;` and `//` stay, because their meaning depends on the application.

use http::Method;
use memchr::{memchr, memchr_iter, memrchr};

use crate::character_class::{is_path, is_query, is_unreserved};
use crate::parse_error::ParseError;

/// The target of a request, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path and the query.
    text: String,
    /// The length of the path in `text`, in bytes.
    path: usize,
}

impl Target {
    /// Returns the path. It is canonical and never empty.
    pub fn path(&self) -> &str {
        &self.text[..self.path]
    }

    /// Returns path and query as they are forwarded, or `*` for a request about the whole server.
    pub fn path_and_query(&self) -> &str {
        &self.text
    }

    /// Returns whether this is the `*` of `OPTIONS *` (RFC 9112 §3.2.4).
    pub fn is_asterisk(&self) -> bool {
        self.text == "*"
    }

    /// Brings a path with an optional query into canonical form. Fails if recipients could
    /// interpret the path differently.
    pub fn canonical(target: &[u8]) -> Result<Self, ParseError> {
        let end = memchr(b'?', target).unwrap_or(target.len());
        let (path, query) = target.split_at(end);
        check_query(query)?;
        if !path.starts_with(b"/") {
            return Err(ParseError::Syntax);
        }
        let mut text = if is_canonical(path) {
            let mut text = Vec::with_capacity(target.len());
            text.extend_from_slice(path);
            text
        } else {
            normal(path, target.len())?
        };
        let path = text.len();
        text.extend_from_slice(query);
        // The conversion succeeds, because all bytes have been checked to be ASCII.
        let text = String::from_utf8(text).map_err(|_| ParseError::Path)?;
        Ok(Self { text, path })
    }

    fn asterisk() -> Self {
        Self { text: "*".into(), path: 1 }
    }

    /// Parses the target of a request line. Also returns its authority if it is in absolute form.
    pub(crate) fn of<'a>(
        method: &Method,
        raw: &'a [u8],
    ) -> Result<(Self, Option<&'a [u8]>), ParseError> {
        match raw {
            [b'/', ..] => Ok((Self::canonical(raw)?, None)),
            b"*" if *method == Method::OPTIONS => Ok((Self::asterisk(), None)),
            _ => Self::absolute(method, raw),
        }
    }

    /// Parses a target in absolute form (RFC 9112 §3.2.2). An empty path means `/`, or `*` for
    /// `OPTIONS` (§3.2.4).
    fn absolute<'a>(
        method: &Method,
        raw: &'a [u8],
    ) -> Result<(Self, Option<&'a [u8]>), ParseError> {
        let rest = without_scheme(raw).ok_or(ParseError::Syntax)?;
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
        let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let target = match rest {
            [] if *method == Method::OPTIONS => Self::asterisk(),
            [b'/', ..] => Self::canonical(rest)?,
            _ => Self::canonical(&[b"/", rest].concat())?,
        };
        Ok((target, Some(authority)))
    }
}

fn without_scheme(raw: &[u8]) -> Option<&[u8]> {
    ["http://", "https://"].iter().find_map(|scheme| {
        let (begin, rest) = raw.split_at_checked(scheme.len())?;
        begin.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    })
}

/// Checks a query. Its syntax is up to the application. Only bytes that could break lines, logs or
/// C strings are refused.
fn check_query(query: &[u8]) -> Result<(), ParseError> {
    let zero = |at: usize| query.get(at + 1..at + 3) == Some(b"00");
    let fine = query.iter().all(|byte| is_query(*byte)) && !memchr_iter(b'%', query).any(zero);
    if fine { Ok(()) } else { Err(ParseError::Path) }
}

/// Returns whether a path is certainly canonical: no escapes, and no segment that begins with a
/// dot.
fn is_canonical(path: &[u8]) -> bool {
    let mut before = 0;
    path.iter().all(|byte| {
        let hidden = before == b'/' && *byte == b'.';
        before = *byte;
        is_path(*byte) && !hidden
    })
}

/// Brings a path that begins with a slash into canonical form.
fn normal(path: &[u8], room: usize) -> Result<Vec<u8>, ParseError> {
    let mut out = Vec::with_capacity(room);
    out.push(b'/');
    let mut segments = path.get(1..).unwrap_or_default().split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let start = out.len();
        unescape(segment, &mut out)?;
        match &out[start..] {
            b"." => out.truncate(start),
            b".." => {
                out.truncate(start);
                leave(&mut out)?;
            }
            segment if may_hide_dot_segment(segment) => return Err(ParseError::Path),
            _ if segments.peek().is_some() => out.push(b'/'),
            _ => {}
        }
    }
    Ok(out)
}

/// Removes the last segment of a path that ends with a slash. Fails if the path would then lead
/// above the root.
fn leave(out: &mut Vec<u8>) -> Result<(), ParseError> {
    out.pop();
    let parent = memrchr(b'/', out).ok_or(ParseError::Path)?;
    out.truncate(parent + 1);
    Ok(())
}

/// Appends a segment in its normal form. Fails if recipients could interpret an escape differently.
fn unescape(segment: &[u8], out: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut rest = segment;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'%' => {
                let (escaped, behind) = escape(behind).ok_or(ParseError::Path)?;
                rest = behind;
                push(escaped, is_unreserved(escaped), out);
            }
            // A URI must not contain these characters unescaped, but some clients send them. They
            // are escaped, so that there is only one form.
            b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' | b'[' | b']' => {
                push(*byte, false, out);
            }
            byte if is_path(*byte) => out.push(*byte),
            _ => return Err(ParseError::Path),
        }
    }
    Ok(())
}

fn push(byte: u8, plain: bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if plain {
        out.push(byte);
    } else {
        let digit = |half: u8| DIGITS[usize::from(half & 15)];
        out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
    }
}

/// Decodes the two digits of an escape. Returns the byte and the rest. Returns `None` for invalid
/// digits and for zero, which ends a path for some recipients.
fn escape(digits: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, rest @ ..] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = (digit(*high)? * 16 + digit(*low)?) as u8;
    (byte != 0).then_some((byte, rest))
}

/// Returns whether some recipient would take a part of this segment for a dot segment, although the
/// segment is none. Tomcat cuts off parameters before it resolves dot segments, and others decode
/// escaped slashes before they resolve them.
fn may_hide_dot_segment(segment: &[u8]) -> bool {
    let mut rest = segment;
    loop {
        let end = memchr_iter(b'%', rest).find(|at| is_slash(rest.get(at + 1..at + 3)));
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let name = piece.split(|byte| *byte == b';').next();
        if matches!(name, Some(b"." | b"..")) {
            return true;
        }
        match behind.get(3..) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
}

/// Returns whether these two digits are those of an escaped slash or backslash.
fn is_slash(digits: Option<&[u8]>) -> bool {
    matches!(digits, Some(b"2F" | b"5C"))
}
