//! Writes a line of JSON for each statement that was cancelled, or that was spared although its
//! request was stopped.
//!
//! A separate thread writes the lines, so that a full disk or pipe blocks no other work. Lines that
//! do not fit into the queue are dropped and counted. The text of a statement is not logged,
//! because it may contain input of visitors.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

use bywash_lease::{Reason, RequestId};
use serde_json::json;

use crate::spared::Spared;

/// The maximum number of lines in the queue.
const WAITING: usize = 1024;

#[derive(Clone)]
pub(crate) struct CancelLog {
    lines: SyncSender<String>,
    dropped: Rc<Cell<u64>>,
}

impl CancelLog {
    /// Creates a log that writes to `out` until its last clone is dropped.
    pub(crate) fn new(mut out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(WAITING);
        std::thread::Builder::new().name("journal".into()).spawn(move || {
            for line in waiting {
                // A write error is ignored, because there is nowhere to report it.
                let _ = out.write_all(line.as_bytes());
                let _ = out.flush();
            }
        })?;
        Ok(Self { lines, dropped: Rc::default() })
    }

    pub(crate) fn cancelled(
        &self,
        database: &str,
        request: &RequestId,
        reason: Reason,
        connection: u64,
        is_done: bool,
    ) {
        let what = if is_done { "cancelled" } else { "would_cancel" };
        self.write(&json!({
            "time": now(), "what": what, "database": database, "request": request.as_str(),
            "reason": reason.name(), "connection": connection,
        }));
    }

    pub(crate) fn spared(&self, database: &str, request: &RequestId, reason: Reason, why: Spared) {
        self.write(&json!({
            "time": now(), "what": "spared", "database": database, "request": request.as_str(),
            "reason": reason.name(), "why": why.name(),
        }));
    }

    pub(crate) fn log_problem(&self, database: &str, complaint: &str) {
        self.write(&json!({
            "time": now(), "what": "complaint", "database": database, "complaint": complaint,
        }));
    }

    /// Logs that an earlier problem of the database `database` is over.
    pub(crate) fn log_recovery(&self, database: &str) {
        self.write(&json!({ "time": now(), "what": "well", "database": database }));
    }

    fn write(&self, line: &serde_json::Value) {
        match self.lines.try_send(format!("{line}\n")) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => self.dropped.set(self.dropped.get() + 1),
        }
    }

    /// Returns the total number of lines that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}

/// Returns the present time in milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}
