//! The parker: the means by which a thread waits for a slot.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{Thread, ThreadId};
use std::time::Instant;

/// The message that ends the wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// The thread has a slot.
    Slot,
    /// The thread gets no slot, because the pool is closed.
    Closed,
}

/// The wait of one thread for a slot. Another thread ends the wait with one call of
/// [`Parker::tell`].
#[derive(Debug)]
pub(crate) struct Parker {
    wakeup: AtomicU8,
    thread: Thread,
}

const NOTHING: u8 = 0;
const SLOT: u8 = 1;
const CLOSED: u8 = 2;

impl Parker {
    /// Creates a parker for the calling thread.
    pub(crate) fn here() -> Self {
        Self { wakeup: AtomicU8::new(NOTHING), thread: std::thread::current() }
    }

    /// Returns the thread that waits with this parker.
    pub(crate) fn thread(&self) -> ThreadId {
        self.thread.id()
    }

    pub(crate) fn tell(&self, what: Wakeup) {
        let what = match what {
            Wakeup::Slot => SLOT,
            Wakeup::Closed => CLOSED,
        };
        // The ordering is `Release`, so that the thread that gets the slot sees all writes that
        // came before this call.
        self.wakeup.store(what, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits for the message that ends the wait, and returns it.
    pub(crate) fn wait(&self) -> Wakeup {
        loop {
            if let Some(wakeup) = self.wakeup() {
                return wakeup;
            }
            std::thread::park();
        }
    }

    /// Waits for the message that ends the wait, or until the time `end`. Returns `None` if no
    /// message has come by that time.
    pub(crate) fn wait_until(&self, end: Instant) -> Option<Wakeup> {
        loop {
            if let Some(wakeup) = self.wakeup() {
                return Some(wakeup);
            }
            let left = end.checked_duration_since(Instant::now())?;
            std::thread::park_timeout(left);
        }
    }

    /// Returns the message that ends the wait; `None` if it has not come.
    pub(crate) fn wakeup(&self) -> Option<Wakeup> {
        match self.wakeup.load(Ordering::Acquire) {
            SLOT => Some(Wakeup::Slot),
            CLOSED => Some(Wakeup::Closed),
            _ => None,
        }
    }
}
