//! The second phase, waiting for the body and then for a slot; and in the third, being ended before an answer
//! begins.
//!
//! A request asks for a slot when its body has been read, or as much of it as may be held in memory: until then
//! the application could do nothing with it. Where the client has to hear from the application before it goes
//! on, that would never be. So a request whose body stands still for a second may run with what is there while
//! a slot is free, and counts as one with a slow client from the start. So does one whose client sends its body
//! only when it is told to (`Expect: 100-continue`), which is when it has a slot.
//!
//! While it waits, a request reads its body ahead, as far as its buffer goes: a FIN that lies
//! behind unread bytes has not arrived as far as the kernel tells, and the client would be served
//! after it has left.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bywash_engine::Reason;
use bywash_units::Time;

use super::{ClientDeadline, Upload};
use crate::body::BodyError;
use crate::driver::{Decision, Driver, Refusal, Ticket};

/// How often a request whose body has not come asks whether a slot is free.
const ASKS: Duration = Duration::from_secs(1);

/// Why there is no body to run with.
pub(super) enum NoBody {
    /// It broke off, is malformed, too slow or too large.
    Broken(BodyError),
    /// Its client waits no longer, by its own word.
    OutOfTime,
}

/// Waits until the body has been read, or as much of it as may be held in memory; or, if it does not come,
/// until a slot is free. `at_once`: the client may have nothing to say before the application has.
pub(super) async fn for_body(
    driver: &Driver,
    upload: &mut Upload,
    deadline: &mut ClientDeadline,
    at_once: bool,
) -> Result<(), NoBody> {
    if upload.has_ended() {
        return Ok(());
    }
    let (mut asks, mut may_ask) = (None, at_once);
    poll_fn(|cx| {
        if let Poll::Ready(read) = upload.poll_ahead(cx) {
            return Poll::Ready(read.map_err(NoBody::Broken));
        }
        if deadline.poll(cx).is_ready() {
            return Poll::Ready(Err(NoBody::OutOfTime));
        }
        loop {
            if may_ask && driver.has_free_slot() {
                return Poll::Ready(Ok(()));
            }
            let sleep = asks.get_or_insert_with(|| Box::pin(tokio::time::sleep(ASKS)));
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            (asks, may_ask) = (None, true);
        }
    })
    .await
}

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

/// Does `task`, unless the request is ended before: then it is dropped. `ticket`: of one that can be stopped. The task comes pinned: a future that takes another by value
/// is twice as large.
pub(super) async fn until_ended<T>(
    ticket: Option<&Ticket>,
    deadline: &mut ClientDeadline,
    mut task: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Ended> {
    if ticket.is_none() && deadline.is_never() {
        return Ok(task.await);
    }
    let mut has_begun = false;
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
