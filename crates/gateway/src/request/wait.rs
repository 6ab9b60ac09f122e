//! The second phase of a request: waits for the body and then for a slot. Also ends a request in
//! the third phase, before its response begins.
//!
//! A request asks for a slot when its body has been read, or as much of the body as may be held in
//! memory. Before that, the application could not use the slot. But some clients send the rest only
//! after the application has answered. So a request whose body is still incomplete after a second
//! may run with what has arrived, while a slot is free. It counts as a request with a slow client
//! from the start. The same applies to a client that sends `Expect: 100-continue`, and its body
//! only after `100 Continue`. The gateway sends that when the request has a slot.
//!
//! While it waits for a slot, a request continues to read its body into its buffer. The kernel does
//! not report a FIN behind unread bytes, so otherwise a client that has left would still be served.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bywash_engine::{Decision, Reason, Refusal};
use bywash_units::Time;

use super::{ClientDeadline, Upload};
use crate::driver::{Driver, Ticket};
use crate::io::body::BodyError;

/// The interval at which a request with an incomplete body checks whether a slot is free.
const ASKS: Duration = Duration::from_secs(1);

/// The reason why a request cannot run, found while waiting for its body.
pub(super) enum NoBody {
    /// The body broke off, is malformed, is too large or arrives too slowly.
    Broken(BodyError),
    /// The client's own deadline has expired.
    OutOfTime,
}

/// Waits until the body has been read, or as much of it as may be held in memory. While the body is
/// incomplete, checks every [`ASKS`] whether a slot is free, and ends the wait if one is. With
/// `at_once`, a free slot ends the wait before the first [`ASKS`], because the client may have
/// nothing to send before the application has.
///
/// # Errors
/// Returns an error if the body is invalid, or if the client's own deadline expires.
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

/// The result of waiting for a slot.
pub(super) enum Waited {
    /// The engine granted a slot, for this reason and at this time.
    Granted(Reason, Time),
    /// The engine refused the request.
    Refused(Refusal),
    /// The body broke off, is malformed or arrives too slowly.
    Broken(BodyError),
}

/// The reason why a request was ended before its response began.
pub(super) enum Ended {
    /// The engine stopped the request while it ran.
    Stopped(Refusal),
    /// The client's own deadline has expired.
    OutOfTime,
}

/// Runs `task` to its end, unless the request is ended before. In that case, the task is dropped by
/// the caller. `ticket` is given for a request that may be stopped. The task is passed pinned,
/// because a future that takes another one by value is twice as large.
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
        // A request whose deadline has already expired does not start its task.
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
        // The body is read even if the request is refused. If unread bytes remain when the
        // connection is closed, the kernel may reset it, and the client may not be able to read the
        // refusal.
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
