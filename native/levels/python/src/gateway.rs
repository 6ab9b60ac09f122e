//! Reads the service level that the gateway has signed for a request.
//!
//! The interpreter's lock is held throughout. So no thread is in this code when another thread
//! forks, and the child can continue to use the keys.

use std::path::PathBuf;

use bywash_levels::{GatewayError, Unreadable};
use pyo3::exceptions::{PyOSError, PyPermissionError, PyValueError};
use pyo3::prelude::*;

use crate::errors::NotBelieved;

/// The keys of the gateway in front of the program.
#[pyclass(frozen, module = "bywash_levels._native")]
pub(crate) struct Gateway(bywash_levels::Gateway);

/// The value of a header field, which servers pass as text (WSGI) or as bytes (ASGI).
#[derive(FromPyObject)]
enum Field {
    Text(String),
    Bytes(Vec<u8>),
}

#[pymethods]
impl Gateway {
    #[new]
    fn new(key_file: PathBuf) -> PyResult<Self> {
        bywash_levels::Gateway::read(&key_file).map(Self).map_err(not_read)
    }

    fn level(&self, field: Field) -> PyResult<String> {
        let bytes = match &field {
            Field::Text(text) => text.as_bytes(),
            Field::Bytes(bytes) => bytes,
        };
        let level = self.0.level(bytes);
        level.map(str::to_owned).map_err(|why| NotBelieved::new_err(why.to_string()))
    }
}

fn not_read(error: GatewayError) -> PyErr {
    match error {
        GatewayError::Unreadable { path, cause: Unreadable::System(error) } => {
            let words = error.to_string();
            PyOSError::new_err((error.raw_os_error(), words, path))
        }
        GatewayError::Unreadable { cause: Unreadable::Open { .. }, .. } => {
            PyPermissionError::new_err(error.to_string())
        }
        GatewayError::Unreadable { .. } | GatewayError::NoKeys { .. } => {
            PyValueError::new_err(error.to_string())
        }
    }
}
