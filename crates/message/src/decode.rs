//! Takes a body out of the bytes that carry it (RFC 9112 §6).
//!
//! Nothing is copied but trailers, and never is a byte used that is behind the body: what follows
//! is the next message, or nobody's.

use crate::chunk::Chunks;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::framing::Framing;
use crate::head::Limits;

/// Takes a body out of bytes.
#[derive(Debug)]
pub struct Decoder(State);

/// What the input means.
#[derive(Debug)]
pub enum Part<'a> {
    /// The input is used up, and the body has not ended.
    More,
    /// Some of the body, never empty.
    Data(&'a [u8]),
    /// The body has ended, perhaps with trailers.
    End(Option<Fields>),
}

#[derive(Debug)]
enum State {
    /// So many bytes are to come; never none.
    Length(u64),
    UntilClose,
    Chunked(Chunks),
    Ended,
    Broken,
}

impl Decoder {
    /// For a body that is framed so.
    pub fn new(framing: Framing, limits: &Limits) -> Self {
        Self(match framing {
            Framing::None | Framing::Length(0) => State::Ended,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunks::new(*limits)),
            Framing::UntilClose => State::UntilClose,
        })
    }

    /// How many bytes of `input` were used, and what they mean. After [`Part::Data`] call again
    /// with the rest. After [`Part::End`] every call says so again, and uses nothing.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Part<'a>), Fault> {
        let result = match &mut self.0 {
            State::Length(left) => Ok(up_to(input, left)),
            State::UntilClose => Ok((input.len(), more_or(input))),
            State::Chunked(chunks) => chunks.decode(input),
            State::Ended => Ok((0, Part::End(None))),
            State::Broken => Err(Fault::Body),
        };
        match &result {
            Ok((_, Part::End(_))) => self.0 = State::Ended,
            Ok(_) if matches!(self.0, State::Length(0)) => self.0 = State::Ended,
            Ok(_) => {}
            Err(_) => self.0 = State::Broken,
        }
        result
    }

    /// The other side has closed: was that the end?
    pub fn closed(&mut self) -> Result<(), Fault> {
        let ended = match self.0 {
            State::UntilClose | State::Ended => true,
            State::Length(_) | State::Chunked(_) | State::Broken => false,
        };
        self.0 = if ended { State::Ended } else { State::Broken };
        if ended { Ok(()) } else { Err(Fault::Body) }
    }

    /// Whether all of the body has been taken.
    pub fn is_ended(&self) -> bool {
        matches!(self.0, State::Ended)
    }

    /// How many bytes of the body are still to come, if that is known.
    pub fn left(&self) -> Option<u64> {
        match self.0 {
            State::Ended => Some(0),
            State::Length(left) => Some(left),
            State::UntilClose | State::Chunked(_) | State::Broken => None,
        }
    }
}

fn more_or(data: &[u8]) -> Part<'_> {
    if data.is_empty() { Part::More } else { Part::Data(data) }
}

/// The first bytes of `input`, no more than are `left`, which then are fewer.
pub(crate) fn up_to<'a>(input: &'a [u8], left: &mut u64) -> (usize, Part<'a>) {
    let count = usize::try_from(*left).unwrap_or(usize::MAX);
    let data = input.get(..count).unwrap_or(input);
    *left -= data.len() as u64;
    (data.len(), more_or(data))
}
