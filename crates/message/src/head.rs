//! Finds the end of a head in bytes that are still arriving.
//!
//! The search goes from line end to line end and resumes where it stopped, so a head that comes
//! byte by byte costs as much as one that comes at once. What can never become a good head is
//! refused as soon as that is known, not when the client has run out of patience.

use memchr::memchr3;

use crate::fault::Fault;
use crate::octet::is_token;

/// What a head may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the request target as it comes.
    pub target: usize,
    /// How many fields; in trailers too.
    pub fields: usize,
    /// Bytes of all field lines together, their ends included; in trailers too.
    pub bytes: usize,
}

impl Limits {
    /// The longest first line: the longest method, the target, the version and two spaces.
    pub(crate) const fn first_line(&self) -> usize {
        self.target.saturating_add(MAX_METHOD + 10)
    }
}

/// The longest method, in bytes. The longest that is registered has 16.
pub(crate) const MAX_METHOD: usize = 32;

/// How far a head has been searched for its end. One for each head.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// Before this there is no CR, LF or NUL but for the ends of whole lines.
    scanned: usize,
    /// Where the line begins that is being searched.
    line: usize,
    /// Where the lines of fields begin; 0 until the first line has ended.
    fields: usize,
}

impl Head {
    /// `Some(n)`: the first `n` bytes are a whole head, its blank line included. `None`: call again
    /// with the same bytes and more behind them.
    ///
    /// One empty line before the first counts as part of the head (RFC 9112 §2.2). Bare CR, bare
    /// LF, NUL, a first byte that begins no line and whatever is beyond the limits are faults.
    pub fn end(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Fault> {
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
                _ => return Err(Fault::Syntax),
            }
            if self.ends_line(at)? {
                return Ok(Some(at + 2));
            }
        }
    }

    /// Takes the line end at `at`: was it that of the blank line?
    fn ends_line(&mut self, at: usize) -> Result<bool, Fault> {
        let blank = at == self.line;
        (self.scanned, self.line) = (at + 2, at + 2);
        if !blank {
            self.fields = if self.fields == 0 { at + 2 } else { self.fields };
            return Ok(false);
        }
        match (self.fields, at) {
            (0, 0) => Ok(false),
            (0, _) => Err(Fault::Syntax),
            _ => Ok(true),
        }
    }

    /// Whether a head may go on that has no end in its first `seen` bytes.
    fn check(&self, bytes: &[u8], seen: usize, limits: &Limits) -> Result<(), Fault> {
        let begun = seen > self.line;
        if self.fields > 0 {
            // The end of the line that has begun will count as well.
            let taken = seen - self.fields + if begun { 2 } else { 0 };
            return if taken > limits.bytes { Err(Fault::HeadTooLarge) } else { Ok(()) };
        }
        if begun && bytes.get(self.line).is_some_and(|first| !is_token(*first)) {
            return Err(Fault::Syntax);
        }
        if seen - self.line <= limits.first_line() {
            return Ok(());
        }
        let answer = bytes.get(self.line..).is_some_and(|line| line.starts_with(b"HTTP/"));
        Err(if answer { Fault::HeadTooLarge } else { Fault::UriTooLong })
    }
}
