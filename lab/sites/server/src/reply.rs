//! A client who waits for its answer, and the worker who owes it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::oneshot;

/// The worker's side. Dropped unused, it tells the client's that the application gave the request up.
#[derive(Debug)]
pub struct ReplySender<T> {
    answer: oneshot::Sender<T>,
    left: Arc<OnceLock<Instant>>,
}

/// The client's side, before anybody waits.
#[derive(Debug)]
pub struct ReplyReceiver<T> {
    answer: oneshot::Receiver<T>,
    left: Arc<OnceLock<Instant>>,
}

/// Dropped before the answer came, it counts a departure; what becomes of the work is the application's.
pub struct PendingReply<'a, T> {
    receiver: ReplyReceiver<T>,
    departures: &'a AtomicU64,
    is_over: bool,
}

/// Both sides of one request.
pub fn reply_channel<T>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let (sender, receiver) = oneshot::channel();
    let left = Arc::default();
    (
        ReplySender { answer: sender, left: Arc::clone(&left) },
        ReplyReceiver { answer: receiver, left },
    )
}

impl<T> ReplySender<T> {
    /// Answers; if the client is not there any more, since when. (If the application has closed, since now.)
    pub fn send(self, answer: T) -> Option<Instant> {
        let lost = self.answer.send(answer).is_err();
        lost.then(|| self.left.get().copied().unwrap_or_else(Instant::now))
    }

    /// When the client left, if it has.
    pub fn left(&self) -> Option<Instant> {
        self.left.get().copied()
    }
}

impl<'a, T> PendingReply<'a, T> {
    /// For what a worker will send.
    pub fn new(receiver: ReplyReceiver<T>, departures: &'a AtomicU64) -> Self {
        Self { receiver, departures, is_over: false }
    }

    /// The answer; `None` if the application has closed before it was there.
    pub async fn answer(mut self) -> Option<T> {
        let answer = (&mut self.receiver.answer).await;
        self.is_over = true;
        answer.ok()
    }
}

impl<T> Drop for PendingReply<'_, T> {
    fn drop(&mut self) {
        if !self.is_over {
            // Before it is counted, so that who sees the count knows that workers see it.
            let _first = self.receiver.left.set(Instant::now());
            self.receiver.answer.close();
            self.departures.fetch_add(1, Ordering::Relaxed);
        }
    }
}
