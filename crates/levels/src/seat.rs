//! The wait of a thread for a slot.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;
use std::time::Instant;

/// The message that ends a thread's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The thread has a slot.
    Slot,
    /// The thread gets no slot, because the pool is closed.
    Closed,
}

/// The wait of one thread. It is notified once, by the thread that removes it from the queue.
#[derive(Debug)]
pub(crate) struct Seat {
    told: AtomicU8,
    thread: Thread,
}

const NOTHING: u8 = 0;
const SLOT: u8 = 1;
const CLOSED: u8 = 2;

impl Seat {
    /// Creates a wait for the calling thread.
    pub(crate) fn here() -> Self {
        Self { told: AtomicU8::new(NOTHING), thread: std::thread::current() }
    }

    pub(crate) fn tell(&self, what: Told) {
        let what = match what {
            Told::Slot => SLOT,
            Told::Closed => CLOSED,
        };
        // Release: the next holder of the slot sees all writes from before it was handed over.
        self.told.store(what, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits for the message.
    pub(crate) fn wait(&self) -> Told {
        loop {
            if let Some(told) = self.told() {
                return told;
            }
            std::thread::park();
        }
    }

    /// Waits for the message, but not longer than until `end`.
    pub(crate) fn wait_until(&self, end: Instant) -> Option<Told> {
        loop {
            if let Some(told) = self.told() {
                return Some(told);
            }
            let left = end.checked_duration_since(Instant::now())?;
            std::thread::park_timeout(left);
        }
    }

    /// Returns the message, if it has come.
    pub(crate) fn told(&self) -> Option<Told> {
        match self.told.load(Ordering::Acquire) {
            SLOT => Some(Told::Slot),
            CLOSED => Some(Told::Closed),
            _ => None,
        }
    }
}
