//! What outlives a pool: the interpreter's end, and a fork.
//!
//! A thread that asks for the interpreter's lock when the interpreter is ending never comes back, or takes the process
//! with it (Python before 3.14). So from some moment on nobody asks any more, and the end waits for those who have.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::closed;

/// Nobody enters the interpreter any more.
static LEAVING: AtomicBool = AtomicBool::new(false);
/// Who is in it, for a task or a job, or about to ask for it.
static WITHIN: AtomicUsize = AtomicUsize::new(0);
/// Submitted requests that have begun.
static JOBS: AtomicUsize = AtomicUsize::new(0);

/// One who is counted until dropped.
pub(crate) struct Counted(&'static AtomicUsize);

impl Counted {
    fn new(count: &'static AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }

    /// A submitted request that begins.
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
    // After it was counted: who looks at the count afterwards waits for it.
    if LEAVING.load(Ordering::SeqCst) {
        return Err(ends());
    }
    Python::try_attach(code).unwrap_or_else(|| Err(ends()))
}

/// Waits until submitted requests that have begun are over, and lets no more tasks begin. At the interpreter's end.
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

/// What is of use to the process that has made it only: in the child of a fork its locks may be held for good.
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
