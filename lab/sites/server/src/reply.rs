//! The channel for one answer, from a worker to the client that waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::oneshot;

/// The worker's side of the channel. If it is dropped unused, the client's side knows that the
/// application has abandoned the request.
#[derive(Debug)]
pub struct ReplySender<T> {
    answer: oneshot::Sender<T>,
    left: Arc<OnceLock<Instant>>,
}

/// The client's side of the channel, before the client waits.
#[derive(Debug)]
pub struct ReplyReceiver<T> {
    answer: oneshot::Receiver<T>,
    left: Arc<OnceLock<Instant>>,
}

/// A client that waits for its answer.
///
/// If the value is dropped before the answer has come, it counts a departure. The application
/// decides whether work on the request continues.
pub struct PendingReply<'a, T> {
    receiver: ReplyReceiver<T>,
    departures: &'a AtomicU64,
    is_over: bool,
}

/// Creates the channel for the answer to one request, and returns both sides.
pub fn reply_channel<T>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let (sender, receiver) = oneshot::channel();
    let left = Arc::default();
    (
        ReplySender { answer: sender, left: Arc::clone(&left) },
        ReplyReceiver { answer: receiver, left },
    )
}

impl<T> ReplySender<T> {
    /// Sends the answer. Returns the time at which the client left; `None` if it has not left. If
    /// the application has closed, returns the present time.
    pub fn send(self, answer: T) -> Option<Instant> {
        let lost = self.answer.send(answer).is_err();
        lost.then(|| self.left.get().copied().unwrap_or_else(Instant::now))
    }

    /// Returns the time at which the client left; `None` if it has not left.
    pub fn left(&self) -> Option<Instant> {
        self.left.get().copied()
    }
}

impl<'a, T> PendingReply<'a, T> {
    /// Creates the wait of a client for the answer. If the client leaves before the answer,
    /// `departures` is incremented.
    pub fn new(receiver: ReplyReceiver<T>, departures: &'a AtomicU64) -> Self {
        Self { receiver, departures, is_over: false }
    }

    /// Waits for the answer. Returns `None` if the application has abandoned the request.
    pub async fn answer(mut self) -> Option<T> {
        let answer = (&mut self.receiver.answer).await;
        self.is_over = true;
        answer.ok()
    }
}

impl<T> Drop for PendingReply<'_, T> {
    fn drop(&mut self) {
        if !self.is_over {
            // The departure time is set before the departure is counted. A reader of the count
            // therefore knows that workers see the departure.
            let _first = self.receiver.left.set(Instant::now());
            self.receiver.answer.close();
            self.departures.fetch_add(1, Ordering::Relaxed);
        }
    }
}
