//! News of a connection as a future, for any runtime.

use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::interest::{Interest, Reason, Refused};
use crate::table::{self, Key, Tell};

/// A connection that is watched until this is dropped. As a future it is ready with the reason
/// when its other side leaves, or at once if it has left, and stays so. With [`Interest::data`]
/// it is ready with [`Reason::Data`] once before: await `&mut` it again for the departure.
///
/// It borrows the connection, so that this is not closed, and its number given to another, while
/// it is watched. In a child of `fork` it is never ready: watch anew there.
#[derive(Debug)]
#[must_use = "the connection is watched only as long as this lives"]
pub struct Watching<'a> {
    key: Option<Key>,
    news: Arc<News>,
    connection: PhantomData<BorrowedFd<'a>>,
}

/// What the watching thread tells the future.
#[derive(Debug, Default)]
pub(crate) struct News(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    /// Not given out yet.
    data: bool,
    departure: Option<Reason>,
    waker: Option<Waker>,
}

/// Watches a connection, whatever else uses it: a blocking socket, or one that is registered with
/// a runtime. One watch for each descriptor of a process; another needs a `try_clone`.
///
/// # Errors
/// `NotConnected`; `AlreadyExists`: it is watched; `InvalidInput`: no stream socket; what the
/// kernel says when descriptors, threads, watches or memory are used up.
pub fn watch<S: AsFd>(connection: &S, interest: Interest) -> io::Result<Watching<'_>> {
    let news = Arc::new(News::default());
    let fd = connection.as_fd().as_raw_fd();
    let key = match table::register(fd, interest, Tell::Future(Arc::clone(&news))) {
        Ok(key) => Some(key),
        Err(Refused::Left(reason)) => {
            news.tell(reason);
            None
        }
        Err(refused) => return Err(refused.into()),
    };
    Ok(Watching { key, news, connection: PhantomData })
}

impl News {
    pub(crate) fn tell(&self, reason: Reason) {
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
}

impl Latest {
    fn take(&mut self) -> Option<Reason> {
        if self.departure.is_none() && std::mem::take(&mut self.data) {
            return Some(Reason::Data);
        }
        self.departure
    }
}

impl Future for Watching<'_> {
    type Output = Reason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reason> {
        let mut latest = self.news.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = latest.take() {
            return Poll::Ready(reason);
        }
        // The one before may do anything when it is dropped: without the lock.
        let before = match &latest.waker {
            Some(waker) if waker.will_wake(context.waker()) => None,
            _ => latest.waker.replace(context.waker().clone()),
        };
        drop(latest);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            table::forget(key);
        }
    }
}
