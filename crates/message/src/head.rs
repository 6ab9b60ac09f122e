//! Finds the end of a head in bytes that are still arriving.
//!
//! The search goes from line end to line end, and resumes where it stopped. So a head that arrives
//! byte by byte costs as much as one that arrives in one piece. Bytes that can never become a valid
//! head are refused as soon as that is certain, not only when the client times out.

use memchr::memchr3;

use crate::character_class::is_token;
use crate::parse_error::ParseError;

/// The limits on the size of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes of the request target as it was received.
    pub target: usize,
    /// The maximum number of fields, in a head and in trailers separately.
    pub fields: usize,
    /// The maximum number of bytes of all field lines together, with their line ends, in a head and
    /// in trailers separately.
    pub bytes: usize,
}

impl Limits {
    /// Returns the maximum length in bytes of the first line: the longest method, the target, the
    /// version and two spaces.
    pub(crate) const fn first_line(&self) -> usize {
        self.target.saturating_add(MAX_METHOD + 10)
    }
}

/// The maximum length of a method, in bytes. The longest registered method has 16.
pub(crate) const MAX_METHOD: usize = 32;

/// The state of the search for the end of one head.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// The offset up to which `bytes` was searched. Before it, there is no NUL, and CR and LF occur
    /// only as line ends.
    scanned: usize,
    /// The offset of the beginning of the line that is being searched.
    line: usize,
    /// The offset of the first field line, or 0 until the first line has ended.
    fields: usize,
}

impl Head {
    /// Searches `bytes` for the end of the head.
    ///
    /// Returns `Some(n)` if the first `n` bytes are a whole head, its blank line included. Returns
    /// `None` if the head is incomplete: call again with the same bytes and more after them. One
    /// empty line before the first line counts as part of the head (RFC 9112 §2.2).
    ///
    /// # Errors
    /// A bare CR, a bare LF, a NUL, or a first byte that cannot begin a line is
    /// [`ParseError::Syntax`]. A head beyond the limits is [`ParseError::UriTooLong`] or
    /// [`ParseError::HeadTooLarge`].
    pub fn end(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, ParseError> {
        loop {
            let rest = bytes.get(self.scanned..).unwrap_or_default();
            let found = memchr3(b'\r', b'\n', 0, rest).map(|at| self.scanned + at);
            let seen = found.unwrap_or(bytes.len());
            self.check(bytes, seen, limits)?;
            self.scanned = seen;
            let Some(at) = found else { return Ok(None) };
            match bytes.get(at..) {
                Some([b'\r', b'\n', ..]) => {}
                Some([b'\r']) => return Ok(None),
                _ => return Err(ParseError::Syntax),
            }
            if self.ends_line(at)? {
                return Ok(Some(at + 2));
            }
        }
    }

    /// Records the line end at `at`. Returns whether this is the end of the blank line after the
    /// head.
    fn ends_line(&mut self, at: usize) -> Result<bool, ParseError> {
        let blank = at == self.line;
        (self.scanned, self.line) = (at + 2, at + 2);
        if !blank {
            self.fields = if self.fields == 0 { at + 2 } else { self.fields };
            return Ok(false);
        }
        match (self.fields, at) {
            (0, 0) => Ok(false),
            (0, _) => Err(ParseError::Syntax),
            _ => Ok(true),
        }
    }

    /// Fails if a head that has no end in its first `seen` bytes can never become valid.
    fn check(&self, bytes: &[u8], seen: usize, limits: &Limits) -> Result<(), ParseError> {
        let begun = seen > self.line;
        if self.fields > 0 {
            // A line that has begun also needs room for its line end.
            let taken = seen - self.fields + if begun { 2 } else { 0 };
            return if taken > limits.bytes { Err(ParseError::HeadTooLarge) } else { Ok(()) };
        }
        if begun && bytes.get(self.line).is_some_and(|first| !is_token(*first)) {
            return Err(ParseError::Syntax);
        }
        if seen - self.line <= limits.first_line() {
            return Ok(());
        }
        let answer = bytes.get(self.line..).is_some_and(|line| line.starts_with(b"HTTP/"));
        Err(if answer { ParseError::HeadTooLarge } else { ParseError::UriTooLong })
    }
}
