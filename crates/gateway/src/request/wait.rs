//! The second phase: waiting for the body and then for a slot. In the third phase: ending a request
//! before its response begins.
//!
//! A request asks for a slot when its body has been read, or as much of it as may be held in
//! memory, because the application could not use the slot before. If the client must hear from the
//! application before it goes on, that would never happen. So a request whose body has paused for a
//! second may run with what has arrived while a slot is free, and counts as one with a slow client
//! from the start. The same applies to a client that sends its body only after `100 Continue`
//! (`Expect: 100-continue`), which it gets when it has a slot.
//!
//! While it waits, a request reads its body ahead, as far as its buffer goes. The kernel does not
//! report a FIN behind unread bytes, so otherwise a client would be served after it has left.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bywash_engine::{Decision, Reason, Refusal};
use bywash_units::Time;

use super::{ClientDeadline, Upload};
use crate::driver::{Driver, Ticket};
use crate::io::body::BodyError;

/// The interval at which a request without a complete body asks whether a slot is free.
const ASKS: Duration = Duration::from_secs(1);

/// The reason why there is no body to run with.
pub(super) enum NoBody {
    /// The body broke off, is malformed, too slow or too large.
    Broken(BodyError),
    /// The client's own deadline has expired.
    OutOfTime,
}

/// Waits until the body has been read, or as much of it as may be held in memory, or, if it does
/// not arrive, until a slot is free. `at_once`: the client may have nothing to send before the
/// application has.
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

/// The outcome of waiting for a slot.
pub(super) enum Waited {
    /// The request got a slot at this time.
    Granted(Reason, Time),
    /// The request was refused.
    Refused(Refusal),
    /// The body broke off, is malformed or too slow.
    Broken(BodyError),
}

/// The reason why a request has ended before its response began.
pub(super) enum Ended {
    /// The engine stopped the request.
    Stopped(Refusal),
    /// The client's own deadline has expired.
    OutOfTime,
}

/// Runs `task` unless the request is ended first, which drops the task. `ticket`: for a request
/// that can be stopped. The task is passed pinned, because a future that takes another one by value
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
        // Do not start work for a client whose deadline has expired.
        if !std::mem::replace(&mut has_begun, true) && deadline.poll(cx).is_ready() {
            return Poll::Ready(Err(Ended::OutOfTime));
        }
        // A result counts even if the request would have been ended at the same moment.
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
        // The body is read even if the request is refused. The fewer bytes are unread when the
        // connection is closed, the more certainly the client can read its refusal.
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
