//! The interpreter's end, and forks: both may come while a pool exists.
//!
//! A thread that asks for the interpreter's lock while the interpreter ends never returns, or
//! crashes the process (Python before 3.14). So from some moment on no thread asks any more, and
//! the end waits for those that already have.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::closed;

/// Whether the interpreter ends, so that no thread may enter it any more.
static LEAVING: AtomicBool = AtomicBool::new(false);
/// Threads that are in the interpreter for a task or a job, or about to ask for its lock.
static WITHIN: AtomicUsize = AtomicUsize::new(0);
/// Submitted requests that have begun.
static JOBS: AtomicUsize = AtomicUsize::new(0);

/// A guard that counts until it is dropped.
pub(crate) struct Counted(&'static AtomicUsize);

impl Counted {
    fn new(count: &'static AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }

    /// Counts a submitted request that begins.
    pub(crate) fn job() -> Self {
        Self::new(&JOBS)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs Python code on a thread that may be the pool's.
pub(crate) fn enter<T>(code: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let _within = Counted::new(&WITHIN);
    let ends = || closed("the interpreter ends");
    // Check after counting: `leave` sets the flag first, and then waits for all that are counted.
    if LEAVING.load(Ordering::SeqCst) {
        return Err(ends());
    }
    Python::try_attach(code).unwrap_or_else(|| Err(ends()))
}

/// Waits until submitted requests that have begun are over, and then lets no more tasks begin.
/// Called at the interpreter's end.
#[pyfunction]
pub(crate) fn leave(py: Python<'_>) -> PyResult<()> {
    let wait = |count: &AtomicUsize| {
        while count.load(Ordering::SeqCst) > 0 {
            py.detach(|| std::thread::sleep(Duration::from_millis(1)));
            py.check_signals()?;
        }
        PyResult::Ok(())
    };
    let waited = wait(&JOBS);
    LEAVING.store(true, Ordering::SeqCst);
    waited.and_then(|()| wait(&WITHIN))
}

/// A value that only the process that made it may use: in the child of a fork, its locks may be
/// held forever.
pub(crate) struct Own<T> {
    /// `None` once dropped.
    thing: Option<T>,
    process: u32,
}

impl<T> Own<T> {
    pub(crate) fn new(thing: T) -> Self {
        Self { thing: Some(thing), process: std::process::id() }
    }

    pub(crate) fn check(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            Ok(())
        } else {
            Err(closed("the pool belongs to the parent process"))
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.thing.as_mut().expect("it is there until it is dropped")
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.thing.as_ref().expect("it is there until it is dropped")
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        let thing = self.thing.take();
        if self.check().is_err() {
            std::mem::forget(thing);
        }
    }
}
