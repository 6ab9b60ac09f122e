//! Decodes a body from the bytes that carry it (RFC 9112 §6).
//!
//! Only trailers are copied. A byte after the end of the body is never consumed: it belongs to the
//! next message or to no message at all.

use crate::chunk::Chunks;
use crate::framing::Framing;
use crate::head::Limits;
use crate::parse_error::ParseError;
use crate::part::{Part, more_or, up_to};

/// The decoder of one body.
#[derive(Debug)]
pub struct Decoder(State);

#[derive(Debug)]
enum State {
    /// The number of bytes of the body that are still to come; never 0.
    Length(u64),
    UntilClose,
    Chunked(Chunks),
    Ended,
    Broken,
}

impl Decoder {
    /// Creates a decoder for a body with this framing.
    pub fn new(framing: Framing, limits: &Limits) -> Self {
        Self(match framing {
            Framing::None | Framing::Length(0) => State::Ended,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunks::new(*limits)),
            Framing::UntilClose => State::UntilClose,
        })
    }

    /// Decodes from the start of `input`. Returns the number of bytes consumed, and their meaning.
    ///
    /// After [`Part::Data`], call again with the rest of the input. After [`Part::End`], every call
    /// returns `Part::End` again and consumes nothing.
    ///
    /// # Errors
    /// Returns [`ParseError::Body`] if the body is malformed. Every later call then returns this
    /// error again.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Part<'a>), ParseError> {
        let result = match &mut self.0 {
            State::Length(left) => Ok(up_to(input, left)),
            State::UntilClose => Ok((input.len(), more_or(input))),
            State::Chunked(chunks) => chunks.decode(input),
            State::Ended => Ok((0, Part::End(None))),
            State::Broken => Err(ParseError::Body),
        };
        match &result {
            Ok((_, Part::End(_))) => self.0 = State::Ended,
            Ok(_) if matches!(self.0, State::Length(0)) => self.0 = State::Ended,
            Ok(_) => {}
            Err(_) => self.0 = State::Broken,
        }
        result
    }

    /// Records that the peer has closed its side of the connection.
    ///
    /// # Errors
    /// Returns [`ParseError::Body`] if the body does not end with the connection and has not ended
    /// before.
    pub fn closed(&mut self) -> Result<(), ParseError> {
        let ended = match self.0 {
            State::UntilClose | State::Ended => true,
            State::Length(_) | State::Chunked(_) | State::Broken => false,
        };
        self.0 = if ended { State::Ended } else { State::Broken };
        if ended { Ok(()) } else { Err(ParseError::Body) }
    }

    /// Returns whether the whole body has been decoded.
    pub fn is_ended(&self) -> bool {
        matches!(self.0, State::Ended)
    }

    /// Returns the number of bytes of the body that are still to come. Returns `None` if that is
    /// unknown.
    pub fn left(&self) -> Option<u64> {
        match self.0 {
            State::Ended => Some(0),
            State::Length(left) => Some(left),
            State::UntilClose | State::Chunked(_) | State::Broken => None,
        }
    }
}
