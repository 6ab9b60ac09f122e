//! The exceptions of this package.

use bywash_levels::{BuildError, Refused as Why};
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(bywash_levels, Refused, PyException, "The pool has refused a request.");
create_exception!(bywash_levels, UnknownLevel, Refused, "The pool has no level of this name.");
create_exception!(bywash_levels, QueueFull, Refused, "The queue of the level is full.");
create_exception!(bywash_levels, TimedOut, Refused, "The request got no turn within its timeout.");
create_exception!(bywash_levels, Closed, Refused, "The pool is closed.");
create_exception!(
    bywash_levels,
    NotBelieved,
    PyException,
    "The field is not valid, or the gateway did not sign it recently."
);

/// Returns the Python exception for a refused request.
pub(crate) fn refused(why: Why) -> PyErr {
    let words = why.to_string();
    match why {
        Why::Unknown { .. } => UnknownLevel::new_err(words),
        Why::Full(_) => QueueFull::new_err(words),
        Why::TimedOut(_) => TimedOut::new_err(words),
        Why::Closed => Closed::new_err(words),
    }
}

/// Returns the Python exception for a pool that could not be built.
pub(crate) fn not_built(error: BuildError) -> PyErr {
    match error {
        BuildError::Thread(error) => PyOSError::new_err(error),
        BuildError::Level { .. }
        | BuildError::Settings(_)
        | BuildError::EmptyName
        | BuildError::Twice(_)
        | BuildError::Unknown { .. }
        | BuildError::Parity
        | BuildError::TooMany(..) => PyValueError::new_err(error.to_string()),
    }
}

/// Returns the exception `Closed` with the message `words`. The reason is that the interpreter
/// ends, or that the pool belongs to the parent process.
pub(crate) fn closed(words: &'static str) -> PyErr {
    Closed::new_err(words)
}

pub(crate) fn busy() -> PyErr {
    PyRuntimeError::new_err("tasks of the request run already")
}
