//! The second phase: waiting for a slot.
//!
//! While it waits, a request reads its body ahead, as far as its buffer goes: a FIN that lies
//! behind unread bytes has not arrived as far as the kernel tells, and the client would be served
//! after it has left.

use std::future::poll_fn;
use std::task::Poll;

use bywash_engine::Reason;
use bywash_units::Time;

use super::Upload;
use crate::driver::{Decision, Refusal, Ticket};

/// How the wait ended.
pub(super) enum Waited {
    /// With a slot, at this time.
    Granted(Reason, Time),
    /// Without.
    Refused(Refusal),
    /// The body broke off: nobody waits for the answer.
    Left,
}

pub(super) async fn for_slot(ticket: &Ticket, upload: &mut Upload) -> Waited {
    poll_fn(|cx| match ticket.poll(cx) {
        Poll::Ready(Decision::Granted { reason, at }) => Poll::Ready(Waited::Granted(reason, at)),
        Poll::Ready(Decision::Refused(refusal)) => Poll::Ready(Waited::Refused(refusal)),
        Poll::Ready(Decision::Waits) | Poll::Pending => match upload.poll_ahead(cx) {
            Poll::Ready(Err(_)) => Poll::Ready(Waited::Left),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        },
    })
    .await
}
