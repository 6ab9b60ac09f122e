//! Trailers: fields behind a body (RFC 9110 §6.5, RFC 9112 §7.1.2).
//!
//! Whoever reads a trailer may have acted on the head already. So only what cannot change how a
//! message is framed, routed, authenticated or understood is taken from one.

use memchr::memchr;

use crate::fault::Fault;
use crate::fields::{Field, Fields};
use crate::head::Limits;
use crate::line;
use crate::name::{Name, alike};

/// Fields without a [`Name`] that are for heads only (RFC 9110 §6.5.1): those that modify a
/// request, that authenticate, or that say how the content is to be read or kept.
const HEAD_ONLY: [&str; 17] = [
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
    "referer",
    "strict-transport-security",
    "vary",
    "warning",
];

/// The lines behind the last chunk, as they arrive.
#[derive(Debug, Default)]
pub(crate) struct Section {
    lines: Vec<u8>,
    /// Where the line begins that is arriving.
    line: usize,
}

impl Section {
    /// Takes bytes up to the blank line, and says how many; and whether that has come.
    pub(crate) fn take(&mut self, input: &[u8], limits: &Limits) -> Result<(usize, bool), Fault> {
        let mut used = 0;
        while let Some(rest) = input.get(used..).filter(|rest| !rest.is_empty()) {
            let end = memchr(b'\n', rest).map(|at| at + 1);
            let piece = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
            // The blank line does not count.
            if self.lines.len() + piece.len() > limits.bytes.saturating_add(2) {
                return Err(Fault::Body);
            }
            let from = self.lines.len().saturating_sub(1);
            self.lines.extend_from_slice(piece);
            // As soon as a CR is not followed by LF there can be no good end.
            let new = self.lines.get(from..).unwrap_or_default();
            if new.windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\n') {
                return Err(Fault::Body);
            }
            used += piece.len();
            if end.is_some() && self.ends_line()? {
                return Ok((used, true));
            }
        }
        Ok((used, false))
    }

    /// A line has ended: was it blank?
    fn ends_line(&mut self) -> Result<bool, Fault> {
        let line = self.lines.get(self.line..).unwrap_or_default();
        if !line.ends_with(b"\r\n") {
            return Err(Fault::Body);
        }
        let blank = line.len() == 2;
        self.line = self.lines.len();
        Ok(blank)
    }

    /// What the lines say, of that which may be taken from trailers.
    pub(crate) fn fields(&self, limits: &Limits) -> Result<Option<Fields>, Fault> {
        let lines = self.lines.strip_suffix(b"\r\n").unwrap_or_default();
        if lines.is_empty() {
            return Ok(None);
        }
        let mut fields = line::fields(lines, limits).map_err(|_| Fault::Body)?;
        fields.retain(is_taken);
        Ok((!fields.is_empty()).then_some(fields))
    }
}

impl Fields {
    /// The trailers of a message that came over HTTP/2, of that which may be taken from them.
    pub fn from_trailers(trailers: &http::HeaderMap) -> Self {
        let mut fields = Self::from_header_map(trailers);
        fields.retain(is_taken);
        fields
    }
}

/// Whether a field may be taken from trailers.
fn is_taken(field: Field<'_>) -> bool {
    let known = !matches!(field.name, Name::Other | Name::ProxyStatus);
    !known && !HEAD_ONLY.iter().any(|name| alike(name.as_bytes(), field.spelled))
}
