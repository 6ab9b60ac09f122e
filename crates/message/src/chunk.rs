//! Decodes the chunked transfer coding (RFC 9112 §7.1) strictly and at a bounded cost.

use crate::character_class::{is_space, is_value};
use crate::head::Limits;
use crate::parse_error::ParseError;
use crate::part::{Part, up_to};
use crate::trailers::Section;

/// The maximum length of one chunk's extension, in bytes.
const MAX_EXTENSION: u32 = 4096;
/// The maximum number of bytes by which all extensions of a body together may exceed their
/// allowances: see [`Chunks::charge`].
const MAX_EXCESS: u64 = 16 * 1024;

/// The decoder of a chunked body.
#[derive(Debug)]
pub(crate) struct Chunks {
    step: Step,
    limits: Limits,
    /// The number of bytes by which the extensions so far exceed their allowances.
    excess: u64,
}

/// The part of the chunked body that comes next.
#[derive(Debug)]
enum Step {
    Frame(Frame),
    /// The number of bytes of the current chunk's data that are still to come; never 0.
    Data(u64),
    Trailers(Section),
}

/// The position between the data of two chunks: `CR LF 1*HEXDIG [ BWS ";" extension ] CR LF`. The
/// first chunk has no CR LF before its size.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// The CR after the data of a chunk.
    Cr,
    /// The LF after that CR.
    Lf,
    /// The digits of a chunk's size. `digits` is the number of digits that have arrived.
    Size { size: u64, digits: u32 },
    /// White space after the size, which is allowed only before an extension. `extension` is its
    /// length in bytes so far.
    Space { size: u64, extension: u32 },
    /// An extension. `extension` is the number of its bytes that have arrived.
    Extension { size: u64, extension: u32 },
    /// The LF after the size and the extension, whose CR has arrived.
    End { size: u64, extension: u32 },
}

impl Chunks {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { step: Step::Frame(Frame::FIRST), limits, excess: 0 }
    }

    /// Works like [`Decoder::decode`](crate::Decoder::decode), but must not be called again after
    /// the end of the body.
    pub(crate) fn decode<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Part<'a>), ParseError> {
        let mut rest = input;
        while let Some((byte, behind)) = rest.split_first() {
            match &mut self.step {
                Step::Frame(frame) => {
                    let frame = *frame;
                    self.step = frame.take(*byte)?;
                    self.charge(frame)?;
                    rest = behind;
                }
                Step::Data(left) => {
                    let (taken, data) = up_to(rest, left);
                    if *left == 0 {
                        self.step = Step::Frame(Frame::Cr);
                    }
                    return Ok((input.len() - rest.len() + taken, data));
                }
                Step::Trailers(section) => {
                    let (taken, ended) = section.take(rest, &self.limits)?;
                    rest = rest.get(taken..).unwrap_or_default();
                    if ended {
                        let fields = section.fields(&self.limits)?;
                        return Ok((input.len() - rest.len(), Part::End(fields)));
                    }
                }
            }
        }
        Ok((input.len(), Part::More))
    }

    /// Charges the extension of a chunk whose frame has ended. Extensions cost the recipient work
    /// and carry nothing (CVE-2023-39326). As in Go's `net/http`, the allowance of a chunk for its
    /// extension is 16 bytes plus twice the chunk's size. The excess over the allowances is summed
    /// over all chunks.
    ///
    /// # Errors
    /// Returns [`ParseError::Body`] if the sum exceeds [`MAX_EXCESS`].
    fn charge(&mut self, left: Frame) -> Result<(), ParseError> {
        if let Frame::End { size, extension } = left {
            let worth = size.saturating_mul(2).saturating_add(16);
            self.excess = (self.excess + u64::from(extension)).saturating_sub(worth);
        }
        if self.excess > MAX_EXCESS { Err(ParseError::Body) } else { Ok(()) }
    }
}

impl Frame {
    const FIRST: Self = Self::Size { size: 0, digits: 0 };

    /// Returns the step that follows after `byte`. Fails if `byte` is not allowed here.
    fn take(self, byte: u8) -> Result<Step, ParseError> {
        let next = match (self, byte) {
            (Self::Cr, b'\r') => Self::Lf,
            (Self::Lf, b'\n') => Self::FIRST,
            (Self::Size { size, digits }, byte) if byte.is_ascii_hexdigit() => {
                Self::Size { size: with_digit(size, digits, byte)?, digits: digits + 1 }
            }
            (Self::Size { size, digits: 1.. }, byte) => Self::behind_size(size, 0, byte)?,
            (Self::Space { size, extension }, byte) if byte != b'\r' => {
                Self::behind_size(size, extension, byte)?
            }
            (Self::Extension { size, extension }, b'\r') => Self::End { size, extension },
            (Self::Extension { size, extension }, byte) if is_value(&[byte]) => {
                Self::Extension { size, extension: one_more(extension)? }
            }
            (Self::End { size: 0, .. }, b'\n') => return Ok(Step::Trailers(Section::default())),
            (Self::End { size, .. }, b'\n') => return Ok(Step::Data(size)),
            _ => return Err(ParseError::Body),
        };
        Ok(Step::Frame(next))
    }

    fn behind_size(size: u64, extension: u32, byte: u8) -> Result<Self, ParseError> {
        match byte {
            b'\r' => Ok(Self::End { size, extension }),
            b';' => Ok(Self::Extension { size, extension: one_more(extension)? }),
            space if is_space(space) => Ok(Self::Space { size, extension: one_more(extension)? }),
            _ => Err(ParseError::Body),
        }
    }
}

fn one_more(extension: u32) -> Result<u32, ParseError> {
    if extension < MAX_EXTENSION { Ok(extension + 1) } else { Err(ParseError::Body) }
}

/// Appends a hexadecimal digit to a chunk's size. Fails if the size would have more than 16 digits
/// or exceed a signed 64-bit number.
fn with_digit(size: u64, digits: u32, byte: u8) -> Result<u64, ParseError> {
    let digit = char::from(byte).to_digit(16).map(u64::from).ok_or(ParseError::Body)?;
    let fits = digits < 16 && size <= i64::MAX as u64 >> 4;
    if fits { Ok(size << 4 | digit) } else { Err(ParseError::Body) }
}
