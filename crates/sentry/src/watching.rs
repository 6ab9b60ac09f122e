//! Events of a connection as a future, for any runtime.

use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::interest::{Interest, Reason, Refused};
use crate::key::Key;
use crate::pending_events::PendingEvents;
use crate::register::{forget, register};
use crate::table::Notifier;

/// A watch of a connection. The watch ends when the value is dropped.
///
/// As a future, it is ready with the reason when the peer has left, and stays ready. With
/// [`Interest::data`], it is first ready once with [`Reason::Data`]: await `&mut` it again for the
/// disconnect.
///
/// The watch borrows the connection. So the connection is not closed, and its descriptor not
/// reused, while it is watched. In a child of `fork`, the future is never ready. Start a new watch
/// there.
#[derive(Debug)]
#[must_use = "the connection is watched only as long as this lives"]
pub struct Watching<'a> {
    key: Option<Key>,
    pending: Arc<PendingEvents>,
    connection: PhantomData<BorrowedFd<'a>>,
}

/// Watches a connection, independently of its other users. The connection may be a blocking socket,
/// or registered with a runtime. A process has at most one watch per descriptor. Use `try_clone`
/// for another one.
///
/// # Errors
/// `NotConnected`; `AlreadyExists` if the connection is already watched; `InvalidInput` if it is
/// not a stream socket; or the kernel's error if descriptors, threads, watches or memory are
/// exhausted.
pub fn watch<S: AsFd>(connection: &S, interest: Interest) -> io::Result<Watching<'_>> {
    let pending = Arc::new(PendingEvents::default());
    let fd = connection.as_fd().as_raw_fd();
    let key = match register(fd, interest, Notifier::Future(Arc::clone(&pending))) {
        Ok(key) => Some(key),
        Err(Refused::Left(reason)) => {
            pending.report(reason);
            None
        }
        Err(refused) => return Err(refused.into()),
    };
    Ok(Watching { key, pending, connection: PhantomData })
}

impl Future for Watching<'_> {
    type Output = Reason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reason> {
        self.pending.poll(context)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            forget(key);
        }
    }
}
