//! Trailers: fields after a body (RFC 9110 §6.5, RFC 9112 §7.1.2).
//!
//! A recipient may have acted on the head before it reads the trailers. Therefore only fields that
//! cannot change how a message is framed, routed, authenticated or interpreted are accepted.

use memchr::memchr;

use crate::fields::{Field, Fields};
use crate::head::Limits;
use crate::line;
use crate::name::{Name, alike};
use crate::parse_error::ParseError;

/// The fields without a [`Name`] that are allowed in heads only (RFC 9110 §6.5.1). They modify a
/// request, authenticate, or control how the content is interpreted or cached.
const HEAD_ONLY: [&str; 16] = [
    "content-location",
    "content-range",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "max-forwards",
    "origin",
    "pragma",
    "proxy-authentication-info",
    "range",
    "strict-transport-security",
    "vary",
    "warning",
];

/// The lines after the last chunk, as they arrive, up to the blank line.
#[derive(Debug, Default)]
pub(crate) struct Section {
    lines: Vec<u8>,
    /// The offset of the beginning of the line that is arriving.
    line: usize,
}

impl Section {
    /// Takes bytes up to and including the blank line. Returns the number of bytes taken, and
    /// whether the blank line has arrived.
    pub(crate) fn take(
        &mut self,
        input: &[u8],
        limits: &Limits,
    ) -> Result<(usize, bool), ParseError> {
        let mut used = 0;
        while let Some(rest) = input.get(used..).filter(|rest| !rest.is_empty()) {
            let end = memchr(b'\n', rest).map(|at| at + 1);
            let piece = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
            // The blank line does not count towards the limit.
            if self.lines.len() + piece.len() > limits.bytes.saturating_add(2) {
                return Err(ParseError::Body);
            }
            let from = self.lines.len().saturating_sub(1);
            self.lines.extend_from_slice(piece);
            // A CR that is not followed by a LF can never become part of a valid line.
            let new = self.lines.get(from..).unwrap_or_default();
            if new.windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\n') {
                return Err(ParseError::Body);
            }
            used += piece.len();
            if end.is_some() && self.ends_line()? {
                return Ok((used, true));
            }
        }
        Ok((used, false))
    }

    /// Records the end of a line. Returns whether the line was blank.
    fn ends_line(&mut self) -> Result<bool, ParseError> {
        let line = self.lines.get(self.line..).unwrap_or_default();
        if !line.ends_with(b"\r\n") {
            return Err(ParseError::Body);
        }
        let blank = line.len() == 2;
        self.line = self.lines.len();
        Ok(blank)
    }

    /// Parses the lines. Returns the fields that are allowed in trailers. Returns `None` if there
    /// are none.
    pub(crate) fn fields(&self, limits: &Limits) -> Result<Option<Fields>, ParseError> {
        let lines = self.lines.strip_suffix(b"\r\n").unwrap_or_default();
        if lines.is_empty() {
            return Ok(None);
        }
        let mut fields = line::fields(lines, limits).map_err(|_| ParseError::Body)?;
        fields.retain(is_taken);
        Ok((!fields.is_empty()).then_some(fields))
    }
}

impl Fields {
    /// Converts the trailers of an HTTP/2 message. Fields that are not allowed in trailers are
    /// dropped.
    pub fn from_trailers(trailers: &http::HeaderMap) -> Self {
        let mut fields = Self::from_header_map(trailers);
        fields.retain(is_taken);
        fields
    }
}

/// Returns whether a field is allowed in trailers. Fields that are not allowed are dropped.
fn is_taken(field: Field<'_>) -> bool {
    let may_be = matches!(
        field.name,
        Name::Other
            | Name::AcceptLanguage
            | Name::ProxyStatus
            | Name::SecFetchDest
            | Name::UserAgent
    );
    may_be && !HEAD_ONLY.iter().any(|name| alike(name.as_bytes(), field.spelled))
}
