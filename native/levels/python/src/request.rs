//! Provides a request and its parallel tasks to Python.
#![allow(unsafe_code, reason = "a submitted request is lent to a function of Python's")]

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;

use crate::errors::busy;
use crate::leaving::{Own, enter};

/// A request whose turn in a pool has come.
#[pyclass(frozen, module = "bywash_levels")]
pub(crate) struct Request {
    turn: Mutex<Turn>,
}

enum Turn {
    /// The caller, which waited for its turn, owns the request.
    Own(Own<bywash_levels::Request>),
    /// A thread of the pool owns the request, and lends it to a function.
    Lent(NonNull<bywash_levels::Request>),
    Over,
}

// SAFETY: a lent pointer is only used under the mutex of `Request`, until `lent` takes it back.
unsafe impl Send for Turn {}

impl Turn {
    fn request(&mut self) -> PyResult<&mut bywash_levels::Request> {
        match self {
            Self::Own(own) => {
                own.check()?;
                Ok(own.get_mut())
            }
            // SAFETY: `lent` has the request exclusively, and takes the pointer back before that
            // ends.
            Self::Lent(lent) => Ok(unsafe { lent.as_mut() }),
            Self::Over => Err(PyRuntimeError::new_err("the request has ended")),
        }
    }
}

impl Request {
    pub(crate) fn new(request: bywash_levels::Request) -> Self {
        Self { turn: Mutex::new(Turn::Own(Own::new(request))) }
    }

    /// Lends a request to the Python code `to`, and takes the request back when `to` returns.
    pub(crate) fn lent<T>(
        py: Python<'_>,
        request: &mut bywash_levels::Request,
        to: impl FnOnce(&Py<Self>) -> PyResult<T>,
    ) -> PyResult<T> {
        /// A guard that takes the request back when it is dropped. If another thread still uses the
        /// request, the guard waits for that thread.
        struct Lease(Py<Request>);
        impl Drop for Lease {
            fn drop(&mut self) {
                let request = self.0.get();
                // Release the interpreter's lock, because tasks of the other thread may need it.
                Python::attach(|py| {
                    py.detach(|| {
                        *request.turn.lock().unwrap_or_else(PoisonError::into_inner) = Turn::Over;
                    });
                });
            }
        }
        let turn = Mutex::new(Turn::Lent(NonNull::from(request)));
        let lease = Lease(Py::new(py, Self { turn })?);
        to(&lease.0)
    }

    fn turn(&self) -> PyResult<MutexGuard<'_, Turn>> {
        match self.turn.try_lock() {
            Ok(turn) => Ok(turn),
            // A panic in a task leaves the state of the turn intact.
            Err(TryLockError::Poisoned(turn)) => Ok(turn.into_inner()),
            Err(TryLockError::WouldBlock) => Err(busy()),
        }
    }
}

#[pymethods]
impl Request {
    /// The name of the request's level.
    #[getter]
    fn level(&self) -> PyResult<String> {
        Ok(self.turn()?.request()?.level().to_owned())
    }

    /// Returns `[fn(item) for item in items]`, computed in parallel.
    fn map(
        &self,
        py: Python<'_>,
        r#fn: Py<PyAny>,
        items: Bound<'_, PyAny>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let items = items.try_iter()?.map(|item| item.map(Bound::unbind));
        let items = items.collect::<PyResult<Vec<_>>>()?;
        let mut turn = self.turn()?;
        let request = turn.request()?;
        let of = |item: &Py<PyAny>| enter(|py| r#fn.call1(py, (item,)));
        let results = py.detach(|| request.map(&items, of));
        let failed = First::default();
        let mut made = Vec::with_capacity(results.len());
        for result in results {
            match result {
                Ok(result) => made.push(result),
                Err(error) => failed.offer(py, error),
            }
        }
        failed.raise(request).map(|()| made)
    }

    /// Calls `fn` with every number from 0 to `n` - 1, in parallel.
    fn parallel_for(&self, py: Python<'_>, n: usize, r#fn: Py<PyAny>) -> PyResult<()> {
        let mut turn = self.turn()?;
        let request = turn.request()?;
        let failed = First::default();
        let each = |index: usize| {
            let call = |py: Python<'_>| {
                if let Err(error) = r#fn.call1(py, (index,)) {
                    failed.offer(py, error);
                }
                Ok(())
            };
            if let Err(error) = enter(call) {
                failed.put(false, error);
            }
        };
        py.detach(|| request.parallel_for(0..n, each));
        failed.raise(request)
    }

    /// Makes the request count as failed when it ends.
    fn fail(&self) -> PyResult<()> {
        self.turn()?.request()?.fail();
        Ok(())
    }

    /// Ends the request, and gives its slot to the next one. Further calls have no effect.
    fn end(&self) -> PyResult<()> {
        let mut turn = self.turn()?;
        if matches!(*turn, Turn::Lent(_)) {
            let words = "a submitted request ends with its function";
            return Err(PyRuntimeError::new_err(words));
        }
        *turn = Turn::Over;
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback))]
    fn __exit__(
        &self,
        kind: Option<Bound<'_, PyAny>>,
        error: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        if kind.is_some() && !matches!(*self.turn()?, Turn::Over) {
            self.fail()?;
        }
        self.end()
    }
}

/// The error to raise if several tasks fail. It is the first error, unless a later one is meant to
/// end the program (`KeyboardInterrupt`).
#[derive(Default)]
struct First(Mutex<Option<(bool, PyErr)>>);

impl First {
    fn offer(&self, py: Python<'_>, error: PyErr) {
        self.put(!error.is_instance_of::<PyException>(py), error);
    }

    fn put(&self, ends_program: bool, error: PyErr) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let comes_first = match &*first {
            None => true,
            Some((first_ends, _)) => ends_program && !first_ends,
        };
        let other = if comes_first {
            first.replace((ends_program, error))
        } else {
            Some((ends_program, error))
        };
        // Dropping an exception may run any code, so drop it without the lock.
        drop(first);
        drop(other);
    }

    fn raise(self, request: &mut bywash_levels::Request) -> PyResult<()> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some((_, error)) => {
                request.fail();
                Err(error)
            }
        }
    }
}
