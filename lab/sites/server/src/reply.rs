//! The channel for one answer, from a worker to a client that waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::oneshot;

/// The worker's side. Dropped unused, it tells the client's side that the application has abandoned
/// the request.
#[derive(Debug)]
pub struct ReplySender<T> {
    answer: oneshot::Sender<T>,
    left: Arc<OnceLock<Instant>>,
}

/// The client's side, before the client waits.
#[derive(Debug)]
pub struct ReplyReceiver<T> {
    answer: oneshot::Receiver<T>,
    left: Arc<OnceLock<Instant>>,
}

/// A client that waits for its answer.
///
/// Dropped before the answer came, it counts a departure; the application decides what becomes of
/// the work.
pub struct PendingReply<'a, T> {
    receiver: ReplyReceiver<T>,
    departures: &'a AtomicU64,
    is_over: bool,
}

/// Returns both sides of one request.
pub fn reply_channel<T>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let (sender, receiver) = oneshot::channel();
    let left = Arc::default();
    (
        ReplySender { answer: sender, left: Arc::clone(&left) },
        ReplyReceiver { answer: receiver, left },
    )
}

impl<T> ReplySender<T> {
    /// Sends the answer. If the client has left, returns the time since when. (If the application
    /// has closed, that is now.)
    pub fn send(self, answer: T) -> Option<Instant> {
        let lost = self.answer.send(answer).is_err();
        lost.then(|| self.left.get().copied().unwrap_or_else(Instant::now))
    }

    /// Returns when the client left, if it has.
    pub fn left(&self) -> Option<Instant> {
        self.left.get().copied()
    }
}

impl<'a, T> PendingReply<'a, T> {
    /// Creates the client's wait for the answer of a worker.
    pub fn new(receiver: ReplyReceiver<T>, departures: &'a AtomicU64) -> Self {
        Self { receiver, departures, is_over: false }
    }

    /// Waits for the answer; `None` if the application has closed before there was one.
    pub async fn answer(mut self) -> Option<T> {
        let answer = (&mut self.receiver.answer).await;
        self.is_over = true;
        answer.ok()
    }
}

impl<T> Drop for PendingReply<'_, T> {
    fn drop(&mut self) {
        if !self.is_over {
            // Set before the departure is counted, so that a reader of the count knows that workers
            // see it.
            let _first = self.receiver.left.set(Instant::now());
            self.receiver.answer.close();
            self.departures.fetch_add(1, Ordering::Relaxed);
        }
    }
}
