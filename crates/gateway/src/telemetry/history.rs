//! The recorder of the gateway's history, one row per second.
//!
//! A follower is notified of each new second, and then reads all seconds that it has not seen. So a
//! follower that was slow or briefly disconnected misses none. `admin/sampler.rs` takes the
//! samples.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use bywash_history::{Columns, History, Reading};
use tokio::sync::watch;

/// The recorded history, and the channel that notifies followers of new seconds.
pub(crate) struct HistoryRecorder {
    history: Mutex<History>,
    /// The number of the newest second, and its event. A follower that has seen all earlier seconds
    /// needs only this event.
    seconds: watch::Sender<Option<(u64, Bytes)>>,
    /// A random number of this process, which is part of the ids of events. Numbers of seconds are
    /// comparable within one process only: an earlier process may have been killed before it saved
    /// its last seconds.
    pub(crate) epoch: u32,
}

impl HistoryRecorder {
    pub(crate) fn new() -> Self {
        Self {
            history: Mutex::default(),
            seconds: watch::channel(None).0,
            epoch: RandomState::new().hash_one("history") as u32,
        }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues from the history that an earlier process saved.
    pub(crate) fn restore(&self, history: History) {
        *self.history() = history;
    }

    /// Returns a receiver that is notified of every second when the second ends.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<(u64, Bytes)>> {
        self.seconds.subscribe()
    }

    /// Returns the number and the event of the newest second. Returns `None` before the first
    /// second.
    pub(crate) fn newest(&self) -> Option<(u64, Bytes)> {
        self.seconds.borrow().clone()
    }

    /// Records the readings of one second, and notifies the followers.
    pub(crate) fn read(&self, reading: Reading) {
        let last = {
            let mut history = self.history();
            history.read(reading);
            history.newest()
        };
        let number = last.number.first().copied();
        let event = number.map(|number| (number, event(self.epoch, "seconds", &last)));
        self.seconds.send_replace(event);
    }
}

/// Formats rows as a server-sent event. Its id contains `epoch` and the number of the last row.
pub(crate) fn event(epoch: u32, name: &str, columns: &Columns) -> Bytes {
    // Rows consist of numbers and names of classes, which can always be serialized.
    let text = serde_json::to_string(columns).unwrap_or_default();
    let last = columns.number.last().copied().unwrap_or_default();
    Bytes::from(format!("id: {epoch:08x}-{last}\nevent: {name}\ndata: {text}\n\n"))
}
