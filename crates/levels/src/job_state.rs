//! The state of a job whose owner cannot see that the job was dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The state that a job in another language shares with the call that submits it.
///
/// [`Pool::submit`](crate::Pool::submit) drops a job that it will never run, and the other language
/// does not see that. This state ensures that exactly one of three things happens: the call reports
/// that the job was refused, the job runs, or its owner is notified that it never will.
#[derive(Clone, Debug, Default)]
pub struct JobState(Arc<AtomicU8>);

/// The job was submitted, and the submitting call has not returned.
const OFFERED: u8 = 0;
/// The submitting call has returned with success, or is about to, and the job waits.
const ACCEPTED: u8 = 1;
/// The job runs or has run.
const BEGUN: u8 = 2;
/// The job was dropped and will not run.
const DROPPED: u8 = 3;

impl JobState {
    /// Records that the pool has taken the job. Returns whether the submitting call may report
    /// success. The result is false if the job is already dropped, because another thread has
    /// closed the pool.
    #[must_use]
    pub fn accept(&self) -> bool {
        let (to, fail) = (Ordering::AcqRel, Ordering::Acquire);
        self.0.compare_exchange(OFFERED, ACCEPTED, to, fail) != Err(DROPPED)
    }

    /// Records that the job runs now.
    pub fn begin(&self) {
        self.0.store(BEGUN, Ordering::Release);
    }

    /// Records that the job is dropped. Returns whether its owner must be notified, because it
    /// waits for a job that will never run.
    #[must_use]
    pub fn end(&self) -> bool {
        let dropped = |at| (at != BEGUN).then_some(DROPPED);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, dropped) == Ok(ACCEPTED)
    }
}
