//! Reads the lines of a file of any size with bounded memory.
//!
//! `BufRead::read_until` alone would buffer everything up to the next line end, which in a hostile
//! or broken file is the whole file.

use std::io::{self, BufRead};

use super::Flaw;

/// The maximum length of a line in bytes. Lines of bywash are below 2 KiB. Lines of other servers
/// hold a request line, a referrer and a user agent. Each of these has at most 8 KiB by default,
/// and escapes make it longer.
pub const LONGEST: usize = 64 * 1024;

/// A reader that returns the lines of another reader one by one.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads lines from the present position of `reader`.
    pub const fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), number: 0 }
    }

    /// Returns the number of the last line that was read, from 1, or 0 before the first line.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the next line without its line end, or `None` at the end. A line of more than
    /// [`LONGEST`] bytes is skipped and returned as [`Flaw::TooLong`].
    ///
    /// # Errors
    /// Returns the errors of the underlying reader.
    pub fn next_line(&mut self) -> io::Result<Option<Result<&[u8], Flaw>>> {
        self.line.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let piece = self.reader.fill_buf()?;
            if piece.is_empty() {
                break;
            }
            any = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            too_long |= self.line.len() + part.len() > LONGEST;
            if !too_long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(if too_long { Err(Flaw::TooLong) } else { Ok(&self.line) }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    fn all(bytes: impl Read, piece: usize) -> Vec<Result<Vec<u8>, Flaw>> {
        let mut lines = Lines::new(BufReader::with_capacity(piece, bytes));
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(line.map(<[u8]>::to_vec));
        }
        assert_eq!(lines.number(), all.len() as u64);
        all
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        for piece in [1, 2, 3, 100] {
            let lines = all(&b"a\n\nbcd\nlast"[..], piece);
            let expected = [&b"a"[..], b"", b"bcd", b"last"].map(|line| Ok(line.to_vec()));
            assert_eq!(lines, expected, "{piece} bytes at a time");
        }
        assert_eq!(all(&b""[..], 4), []);
        assert_eq!(all(&b"a\n"[..], 4), [Ok(b"a".to_vec())]);
    }

    #[test]
    fn of_a_line_without_end_no_more_is_held_than_of_any() {
        let endless = io::repeat(b'x').take(10 << 20).chain(&b"\nafter"[..]);
        let mut lines = Lines::new(BufReader::new(endless));
        assert_eq!(lines.next_line().unwrap(), Some(Err(Flaw::TooLong)));
        assert!(lines.line.capacity() <= 2 * LONGEST, "{}", lines.line.capacity());
        assert_eq!(lines.next_line().unwrap(), Some(Ok(&b"after"[..])));
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn the_longest_line_is_still_one() {
        let line = vec![b'x'; LONGEST];
        assert_eq!(all(&line[..], 1000), [Ok(line.clone())]);
        assert_eq!(all(&[&line[..], b"x"].concat()[..], 1000), [Err(Flaw::TooLong)]);
    }
}
