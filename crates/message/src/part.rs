//! The result of decoding a piece of a body.

use crate::fields::Fields;

/// The meaning of the bytes that a decoder has consumed.
#[derive(Debug)]
pub enum Part<'a> {
    /// All of the input is consumed, and the body has not ended.
    More,
    /// Bytes of the body, never empty.
    Data(&'a [u8]),
    /// The end of the body, with its trailers if it has any.
    End(Option<Fields>),
}

/// Returns bytes of a body as a part: [`Part::More`] if there are none.
pub(crate) fn more_or(data: &[u8]) -> Part<'_> {
    if data.is_empty() { Part::More } else { Part::Data(data) }
}

/// Takes at most `left` bytes from the start of `input`, and subtracts their number from `left`.
/// Returns that number, and the bytes as a part.
pub(crate) fn up_to<'a>(input: &'a [u8], left: &mut u64) -> (usize, Part<'a>) {
    let count = usize::try_from(*left).unwrap_or(usize::MAX);
    let data = input.get(..count).unwrap_or(input);
    *left -= data.len() as u64;
    (data.len(), more_or(data))
}
