//! Handles the end of the interpreter and forks, both of which may come while a pool exists.
//!
//! While the interpreter ends, a thread that asks for its lock never gets it, or crashes the
//! process (Python before 3.14). Therefore [`leave`] first keeps threads from asking for the lock,
//! and then waits for those that have asked already.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::closed;

/// Whether the interpreter is ending, so that no thread may enter it any more.
static LEAVING: AtomicBool = AtomicBool::new(false);
/// The number of threads that run Python code for a task or a submitted request, or are about to
/// ask for the interpreter's lock.
static WITHIN: AtomicUsize = AtomicUsize::new(0);
/// The number of submitted requests that have begun and not ended.
static JOBS: AtomicUsize = AtomicUsize::new(0);

/// A guard that adds one to its counter until it is dropped.
pub(crate) struct Counted(&'static AtomicUsize);

impl Counted {
    fn new(count: &'static AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }

    /// Counts a submitted request from its beginning until the guard is dropped.
    pub(crate) fn job() -> Self {
        Self::new(&JOBS)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs Python code on any thread, including a thread of a pool. Returns the error `Closed` if the
/// interpreter is ending.
pub(crate) fn enter<T>(code: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let _within = Counted::new(&WITHIN);
    let ends = || closed("the interpreter ends");
    // Check after counting: `leave` sets the flag first, and then waits for all counted threads.
    if LEAVING.load(Ordering::SeqCst) {
        return Err(ends());
    }
    Python::try_attach(code).unwrap_or_else(|| Err(ends()))
}

/// Waits until all submitted requests that have begun are over, and then prevents further tasks.
/// Python calls this function when the interpreter ends.
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

/// A value that only the process that created it may use. After a fork, the child has a copy of the
/// value, in which locks may be held forever.
pub(crate) struct Own<T> {
    /// The value, or `None` once it is dropped.
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
