//! `bywash_levels._native`: pools and requests for the Python package `bywash_levels`, which adds
//! names, dataclasses and futures.
//!
//! Code that waits, or that runs tasks, releases the interpreter's lock, and each task takes it. No
//! lock of the pool is held while a thread waits for the interpreter's lock.

mod errors;
mod gateway;
mod leaving;
mod pool;
mod request;

use pyo3::prelude::*;

/// The native part of the package `bywash_levels`. Programs use the package instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::errors::{Closed, NotBelieved, QueueFull, Refused, TimedOut, UnknownLevel};
    #[pymodule_export]
    use crate::gateway::Gateway;
    #[pymodule_export]
    use crate::leaving::leave;
    #[pymodule_export]
    use crate::pool::Pool;
    #[pymodule_export]
    use crate::request::Request;
}
