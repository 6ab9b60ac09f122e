//! Reads an answer from a stream of tokio.
//!
//! If a future of [`receive`] or [`head`] is dropped, no byte is lost: call the function again with
//! the same `answer`. A dropped future of [`whole`] may lose the head.
//!
//! Errors that a function does not document are those of the stream or of [`Answer::feed`].

use std::io::Result;

use bywash_message::Response;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Answer;

/// Reads once from the stream. Returns the head if these bytes complete it, otherwise `None`.
pub async fn receive<S>(stream: &mut S, answer: &mut Answer) -> Result<Option<Response>>
where
    S: AsyncRead + Unpin,
{
    let mut bytes = Vec::with_capacity(16 * 1024);
    stream.read_buf(&mut bytes).await?;
    answer.feed(&bytes)
}

/// Reads until the head is complete. The beginning of the body may arrive with it.
///
/// # Errors
/// Returns [`ErrorKind::InvalidInput`](std::io::ErrorKind::InvalidInput) if the head of `answer`
/// has already arrived.
pub async fn head<S>(stream: &mut S, answer: &mut Answer) -> Result<Response>
where
    S: AsyncRead + Unpin,
{
    answer.expect_no_head()?;
    loop {
        if let Some(head) = receive(stream, answer).await? {
            return Ok(head);
        }
    }
}

/// Reads the whole answer. Returns its head; its body is in `answer`. After dropping the future, do
/// not continue to read, because the head may be lost.
///
/// # Errors
/// Returns [`ErrorKind::InvalidInput`](std::io::ErrorKind::InvalidInput) if the head of `answer`
/// has already arrived.
pub async fn whole<S>(stream: &mut S, answer: &mut Answer) -> Result<Response>
where
    S: AsyncRead + Unpin,
{
    let head = head(stream, answer).await?;
    while !answer.has_ended() {
        receive(stream, answer).await?;
    }
    Ok(head)
}
