//! Where a thread waits for a slot.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;
use std::time::Instant;

/// What a thread that waits is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It has a slot.
    Slot,
    /// There will be none.
    Closed,
}

/// One thread's wait. Told once, by whoever takes it out of where it waits.
#[derive(Debug)]
pub(crate) struct Seat {
    told: AtomicU8,
    thread: Thread,
}

const NOTHING: u8 = 0;
const SLOT: u8 = 1;
const CLOSED: u8 = 2;

impl Seat {
    /// For the thread that calls.
    pub(crate) fn here() -> Self {
        Self { told: AtomicU8::new(NOTHING), thread: std::thread::current() }
    }

    pub(crate) fn tell(&self, what: Told) {
        let what = match what {
            Told::Slot => SLOT,
            Told::Closed => CLOSED,
        };
        // Release: what was done before the slot was handed over is seen by who has it next.
        self.told.store(what, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits until it is told.
    pub(crate) fn wait(&self) -> Told {
        loop {
            if let Some(told) = self.told() {
                return told;
            }
            std::thread::park();
        }
    }

    /// The same, for no longer than that.
    pub(crate) fn wait_until(&self, end: Instant) -> Option<Told> {
        loop {
            if let Some(told) = self.told() {
                return Some(told);
            }
            let left = end.checked_duration_since(Instant::now())?;
            std::thread::park_timeout(left);
        }
    }

    /// What it was told so far.
    pub(crate) fn told(&self) -> Option<Told> {
        match self.told.load(Ordering::Acquire) {
            SLOT => Some(Told::Slot),
            CLOSED => Some(Told::Closed),
            _ => None,
        }
    }
}
