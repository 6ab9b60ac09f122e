//! Reads an answer from a stream that blocks.
//!
//! Errors that a function does not document are those of the stream or of [`Answer::feed`].

use std::io::{Read, Result};

use bywash_message::Response;

use crate::Answer;

/// Reads once from the stream. Returns the head if these bytes complete it, otherwise `None`.
pub fn receive(stream: &mut impl Read, answer: &mut Answer) -> Result<Option<Response>> {
    let mut bytes = [0; 16 * 1024];
    let count = stream.read(&mut bytes)?;
    answer.feed(&bytes[..count])
}

/// Reads until the head is complete. The beginning of the body may arrive with it.
///
/// # Errors
/// Returns [`ErrorKind::InvalidInput`](std::io::ErrorKind::InvalidInput) if the head of `answer`
/// has already arrived.
pub fn head(stream: &mut impl Read, answer: &mut Answer) -> Result<Response> {
    answer.expect_no_head()?;
    loop {
        if let Some(head) = receive(stream, answer)? {
            return Ok(head);
        }
    }
}

/// Reads the whole answer. Returns its head; its body is in `answer`.
///
/// # Errors
/// Returns [`ErrorKind::InvalidInput`](std::io::ErrorKind::InvalidInput) if the head of `answer`
/// has already arrived.
pub fn whole(stream: &mut impl Read, answer: &mut Answer) -> Result<Response> {
    let head = head(stream, answer)?;
    while !answer.has_ended() {
        receive(stream, answer)?;
    }
    Ok(head)
}
