//! The runtime of a thread that runs tasks of its own.

use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

/// Creates a runtime whose tasks all run on the calling thread.
///
/// # Errors
/// Returns an error if the system cannot create what the runtime needs, such as an epoll instance.
pub(crate) fn local() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}
