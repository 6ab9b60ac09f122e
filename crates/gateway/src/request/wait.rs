//! The second phase, waiting for a slot; and in the third, being stopped.
//!
//! While it waits, a request reads its body ahead, as far as its buffer goes: a FIN that lies
//! behind unread bytes has not arrived as far as the kernel tells, and the client would be served
//! after it has left.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bywash_engine::Reason;
use bywash_units::Time;

use super::Upload;
use crate::body::BodyError;
use crate::driver::{Decision, Refusal, Ticket};

/// How the wait ended.
pub(super) enum Waited {
    /// With a slot, at this time.
    Granted(Reason, Time),
    /// Without.
    Refused(Refusal),
    /// The body broke off, is malformed or too slow.
    Broken(BodyError),
}

/// Does `task`, unless the request is stopped before: then it is dropped, and with it whatever the upstream
/// was asked for.
pub(super) async fn until_stopped<T>(
    ticket: Option<&Ticket>,
    task: impl Future<Output = T>,
) -> Result<T, Refusal> {
    let Some(ticket) = ticket else { return Ok(task.await) };
    let mut task = pin!(task);
    let done = poll_fn(|cx| match task.as_mut().poll(cx) {
        // What has come counts, even if it was to be stopped in the same moment.
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => ticket.poll_stopped(cx).map(Err),
    });
    let done = done.await;
    if done.is_ok() {
        ticket.answering();
    }
    done
}

pub(super) async fn for_slot(ticket: &Ticket, upload: &mut Upload) -> Waited {
    poll_fn(|cx| {
        let decision = ticket.poll(cx);
        if let Poll::Ready(Decision::Granted { reason, at }) = decision {
            return Poll::Ready(Waited::Granted(reason, at));
        }
        // What is there of a body is read, of a refused one too: the fewer bytes lie unread when
        // the connection is closed, the surer the client reads its refusal.
        if let Poll::Ready(Err(error)) = upload.poll_ahead(cx) {
            return Poll::Ready(Waited::Broken(error));
        }
        match decision {
            Poll::Ready(Decision::Refused(refusal)) => Poll::Ready(Waited::Refused(refusal)),
            _ => Poll::Pending,
        }
    })
    .await
}
