//! The process's limit on open files, which include connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files of this process to its hard limit. Returns the soft limit
/// that then holds. Each connection is an open file, and the usual soft limit is 1,024.
pub fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => most,
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}
