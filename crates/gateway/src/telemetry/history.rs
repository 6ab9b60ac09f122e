//! The recorded history of the gateway, second by second.
//!
//! A follower is notified of each new second and then reads all seconds that it has not seen, so a
//! follower that was slow or briefly away misses none. `admin/sampler.rs` takes the samples.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use bywash_history::{Columns, History, Reading};
use tokio::sync::watch;

/// The recorded history, for operators.
pub(crate) struct HistoryRecorder {
    history: Mutex<History>,
    /// The newest second: its number, and the event for a follower that has seen the second before
    /// it.
    seconds: watch::Sender<Option<(u64, Bytes)>>,
    /// A random number of this process. Numbers of seconds are comparable within one process only:
    /// an earlier process may have been killed before it saved its last seconds.
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

    /// Returns a receiver that is notified of every second as it ends.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<(u64, Bytes)>> {
        self.seconds.subscribe()
    }

    /// The last second, and its number.
    pub(crate) fn newest(&self) -> Option<(u64, Bytes)> {
        self.seconds.borrow().clone()
    }

    /// Records one second.
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

/// Formats rows as an event with the number of the last row.
pub(crate) fn event(epoch: u32, name: &str, columns: &Columns) -> Bytes {
    // Numbers and names of classes: always serializable.
    let text = serde_json::to_string(columns).unwrap_or_default();
    let last = columns.number.last().copied().unwrap_or_default();
    Bytes::from(format!("id: {epoch:08x}-{last}\nevent: {name}\ndata: {text}\n\n"))
}
