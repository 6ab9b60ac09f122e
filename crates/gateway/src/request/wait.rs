//! The second phase, waiting for a slot; and in the third, being ended before an answer begins.
//!
//! While it waits, a request reads its body ahead, as far as its buffer goes: a FIN that lies
//! behind unread bytes has not arrived as far as the kernel tells, and the client would be served
//! after it has left.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bywash_engine::Reason;
use bywash_units::Time;

use super::{ClientDeadline, Upload};
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

/// Why a request has ended before its answer began.
pub(super) enum Ended {
    /// It was stopped.
    Stopped(Refusal),
    /// Its client waits no longer, by its own word.
    OutOfTime,
}

/// Does `task`, unless the request is ended before: then it is dropped, and with it whatever the upstream
/// was asked for. `ticket`: of one that can be stopped.
pub(super) async fn until_ended<T>(
    ticket: Option<&Ticket>,
    deadline: &mut ClientDeadline,
    task: impl Future<Output = T>,
) -> Result<T, Ended> {
    if ticket.is_none() && deadline.is_never() {
        return Ok(task.await);
    }
    let (mut task, mut has_begun) = (pin!(task), false);
    let done = poll_fn(|cx| {
        // For who waits no longer nothing is begun.
        if !std::mem::replace(&mut has_begun, true) && deadline.poll(cx).is_ready() {
            return Poll::Ready(Err(Ended::OutOfTime));
        }
        // What has come counts, even if it was to be ended in the same moment.
        if let Poll::Ready(done) = task.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        let stopped = ticket.map_or(Poll::Pending, |ticket| ticket.poll_stopped(cx));
        match stopped {
            Poll::Ready(refusal) => Poll::Ready(Err(Ended::Stopped(refusal))),
            Poll::Pending => deadline.poll(cx).map(|()| Err(Ended::OutOfTime)),
        }
    });
    let done = done.await;
    if let (Ok(_), Some(ticket)) = (&done, ticket) {
        ticket.answering();
    }
    done
}

pub(super) async fn for_slot(
    ticket: &Ticket,
    upload: &mut Upload,
    deadline: &mut ClientDeadline,
) -> Waited {
    poll_fn(|cx| {
        if deadline.poll(cx).is_ready() {
            ticket.out_of_time();
        }
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
