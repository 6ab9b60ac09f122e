//! The bounded first-come-first-served queue between the HTTP thread and the workers.
//!
//! The queue is first open, then closed permanently. One mutex protects the waiting items and the
//! state. Threads hold it only for a few instructions. The condition variable signals that an item
//! was added or that the queue was closed. The HTTP thread never waits: it answers at once if the
//! queue is full.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded queue of items that wait for a worker.
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct QueueState<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// Creates an open queue in which at most `capacity` items can wait.
    pub fn new(capacity: usize) -> Self {
        let state = QueueState { items: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    /// Adds `item` at the end. Returns the item if the queue is full or closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.is_closed || state.items.len() >= self.capacity {
            return Err(item);
        }
        state.items.push_back(item);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits until the queue has an item, then removes and returns the oldest. Returns `None` once
    /// the queue is closed.
    pub fn pop(&self) -> Option<T> {
        let idle = |state: &mut QueueState<T>| state.items.is_empty() && !state.is_closed;
        let state = self.changed.wait_while(self.lock(), idle);
        state.unwrap_or_else(PoisonError::into_inner).items.pop_front()
    }

    /// Closes the queue, and returns the items that were still waiting.
    pub fn close(&self) -> VecDeque<T> {
        let mut state = self.lock();
        state.is_closed = true;
        self.changed.notify_all();
        std::mem::take(&mut state.items)
    }

    /// Returns the number of items that wait in the queue.
    pub fn length(&self) -> usize {
        self.lock().items.len()
    }

    /// Locks the state. A poisoned lock is ignored, because every change under the lock is a single
    /// step.
    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_oldest_comes_out_first() {
        let queue = Queue::new(3);
        for item in 1..=3 {
            queue.push(item).unwrap();
        }
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn a_full_queue_gives_the_item_back_at_once() {
        let queue = Queue::new(1);
        assert_eq!(queue.push('a'), Ok(()));
        assert_eq!(queue.push('b'), Err('b'));
        assert_eq!(queue.length(), 1);
    }

    #[test]
    fn closing_returns_the_waiting_and_ends_the_takers() {
        let queue = Queue::new(2);
        queue.push(7).unwrap();
        assert_eq!(queue.close(), [7]);
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.push(8), Err(8));
    }

    #[test]
    fn a_taker_that_waits_is_woken_by_closing() {
        let queue: Queue<u8> = Queue::new(1);
        thread::scope(|scope| {
            let taker = scope.spawn(|| queue.pop());
            queue.close();
            assert_eq!(taker.join().unwrap(), None);
        });
    }
}
