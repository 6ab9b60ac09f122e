//! What becomes of a job that was handed in for somebody who cannot be told by dropping it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Kept by a job of another language and by the call that hands it in: [`Pool::submit`](crate::Pool::submit) drops a
/// job that it will never run, which such a language does not see. Either the call says that the job was refused, or
/// the job is run, or its owner is told that it never will be: one of the three, once.
#[derive(Clone, Debug, Default)]
pub struct Fate(Arc<AtomicU8>);

/// The call has not returned.
const OFFERED: u8 = 0;
/// It has, or is about to, with success.
const ACCEPTED: u8 = 1;
/// The job runs or has run.
const BEGUN: u8 = 2;
/// It was dropped, and did not run.
const DROPPED: u8 = 3;

impl Fate {
    /// The pool has taken the job: whether its owner may be told so. Not if it was dropped by now, as another thread
    /// has closed the pool.
    #[must_use]
    pub fn accept(&self) -> bool {
        let (to, fail) = (Ordering::AcqRel, Ordering::Acquire);
        self.0.compare_exchange(OFFERED, ACCEPTED, to, fail) != Err(DROPPED)
    }

    /// The job runs.
    pub fn begin(&self) {
        self.0.store(BEGUN, Ordering::Release);
    }

    /// The job is dropped: whether its owner waits for it, and is to be told.
    #[must_use]
    pub fn end(&self) -> bool {
        let dropped = |at| (at != BEGUN).then_some(DROPPED);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, dropped) == Ok(ACCEPTED)
    }
}
