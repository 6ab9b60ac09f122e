//! A client who waits for its answer.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;

/// Dropped before the answer came, it counts a departure; what becomes of the work is the application's.
pub struct Waiting<'a, T> {
    answer: oneshot::Receiver<T>,
    departures: &'a AtomicU64,
    is_over: bool,
}

impl<'a, T> Waiting<'a, T> {
    /// For what a worker will send.
    pub fn new(answer: oneshot::Receiver<T>, departures: &'a AtomicU64) -> Self {
        Self { answer, departures, is_over: false }
    }

    /// The answer; `None` if the application has closed before it was there.
    pub async fn answer(mut self) -> Option<T> {
        let answer = (&mut self.answer).await;
        self.is_over = true;
        answer.ok()
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        if !self.is_over {
            // Closed before it is counted, so that who sees the count knows that workers see it.
            self.answer.close();
            self.departures.fetch_add(1, Ordering::Relaxed);
        }
    }
}
