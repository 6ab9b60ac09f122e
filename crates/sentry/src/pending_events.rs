//! The events of a watch that the watching thread has reported and that the watch's future has not
//! returned yet.

use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::interest::Reason;

/// The events that the watching thread passes to the future of one watch.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    /// Whether unread data was reported, and the future has not returned this event yet.
    data: bool,
    /// The way in which the peer left; `None` if the peer is still connected. The value stays, so
    /// every later poll returns it.
    departure: Option<Reason>,
    waker: Option<Waker>,
}

impl PendingEvents {
    /// Stores an event and wakes the future.
    pub(crate) fn report(&self, reason: Reason) {
        let waker = {
            let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match reason {
                Reason::Data => latest.data = true,
                Reason::Ended | Reason::Reset => latest.departure = Some(reason),
            }
            latest.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the event that the future returns next. If there is none, registers the waker of
    /// `context`.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Reason> {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = latest.take() {
            return Poll::Ready(reason);
        }
        // Dropping the old waker may run arbitrary code, so release the lock first.
        let before = match &latest.waker {
            Some(waker) if waker.will_wake(context.waker()) => None,
            _ => latest.waker.replace(context.waker().clone()),
        };
        drop(latest);
        drop(before);
        Poll::Pending
    }
}

impl Latest {
    /// Returns the departure of the peer if there was one. Otherwise returns the event of data, and
    /// removes it.
    fn take(&mut self) -> Option<Reason> {
        if self.departure.is_none() && std::mem::take(&mut self.data) {
            return Some(Reason::Data);
        }
        self.departure
    }
}
