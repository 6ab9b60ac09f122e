//! A client who waits for its answer, and the worker who owes it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::oneshot;

/// The worker's side. Dropped unused, it tells the client's that the application gave the request up.
#[derive(Debug)]
pub struct Reply<T> {
    answer: oneshot::Sender<T>,
    left: Arc<OnceLock<Instant>>,
}

/// The client's side, before anybody waits.
#[derive(Debug)]
pub struct Owed<T> {
    answer: oneshot::Receiver<T>,
    left: Arc<OnceLock<Instant>>,
}

/// Dropped before the answer came, it counts a departure; what becomes of the work is the application's.
pub struct Waiting<'a, T> {
    owed: Owed<T>,
    departures: &'a AtomicU64,
    is_over: bool,
}

/// Both sides of one request.
pub fn exchange<T>() -> (Reply<T>, Owed<T>) {
    let (sender, receiver) = oneshot::channel();
    let left = Arc::default();
    (Reply { answer: sender, left: Arc::clone(&left) }, Owed { answer: receiver, left })
}

impl<T> Reply<T> {
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

impl<'a, T> Waiting<'a, T> {
    /// For what a worker will send.
    pub fn new(owed: Owed<T>, departures: &'a AtomicU64) -> Self {
        Self { owed, departures, is_over: false }
    }

    /// The answer; `None` if the application has closed before it was there.
    pub async fn answer(mut self) -> Option<T> {
        let answer = (&mut self.owed.answer).await;
        self.is_over = true;
        answer.ok()
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        if !self.is_over {
            // Before it is counted, so that who sees the count knows that workers see it.
            let _first = self.owed.left.set(Instant::now());
            self.owed.answer.close();
            self.departures.fetch_add(1, Ordering::Relaxed);
        }
    }
}
