//! One line of JSON for each statement that was cancelled, or that was spared although its request was stopped.
//!
//! A thread of its own writes them: a disk or a pipe that takes no more holds up nobody; lines that do not fit are
//! dropped and counted. What a statement says is not written down: it may have a visitor's words in it.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

use bywash_lease::{Reason, RequestId};
use serde_json::json;

use crate::numbers::Spared;

/// Lines that may wait.
const WAITING: usize = 1024;

#[derive(Clone)]
pub(crate) struct Journal {
    lines: SyncSender<String>,
    dropped: Rc<Cell<u64>>,
}

impl Journal {
    /// Writes to `out` until the last journal of it is dropped.
    pub(crate) fn new(mut out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(WAITING);
        std::thread::Builder::new().name("journal".into()).spawn(move || {
            for line in waiting {
                // Nobody is there to be told that nobody reads.
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

    pub(crate) fn complain(&self, database: &str, complaint: &str) {
        self.write(&json!({
            "time": now(), "what": "complaint", "database": database, "complaint": complaint,
        }));
    }

    /// What was complained of is over.
    pub(crate) fn is_well(&self, database: &str) {
        self.write(&json!({ "time": now(), "what": "well", "database": database }));
    }

    fn write(&self, line: &serde_json::Value) {
        match self.lines.try_send(format!("{line}\n")) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => self.dropped.set(self.dropped.get() + 1),
        }
    }

    /// Lines that did not fit.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}
