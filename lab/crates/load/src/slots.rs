//! Bounds the number of concurrent visitors, because memory and descriptors are limited. Each of
//! these visitors has a slot.
//!
//! All slots are used on one thread. Dropping a [`Slot`] releases it, however the visitor's session
//! ended.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The number of descriptors that are reserved for everything else in the process.
const SPARE: usize = 200;

/// The slots of a run of the load generator. Each concurrent visitor takes one slot.
#[derive(Debug)]
pub(crate) struct Slots {
    limit: usize,
    taken: Cell<usize>,
    freed: Notify,
}

impl Slots {
    /// Creates `wanted` slots, or fewer if this process may not open that number of descriptors.
    pub(crate) fn new(wanted: usize) -> Rc<Self> {
        Self::of(descriptors().map_or(wanted, |open| wanted.min(open.saturating_sub(SPARE))))
    }

    fn of(limit: usize) -> Rc<Self> {
        Rc::new(Self { limit, taken: Cell::new(0), freed: Notify::new() })
    }

    /// Returns the total number of slots, free or taken.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes a slot; `None` if none is free.
    pub(crate) fn take(self: &Rc<Self>) -> Option<Slot> {
        let taken = self.taken.get();
        (taken < self.limit).then(|| {
            self.taken.set(taken + 1);
            Slot(Rc::clone(self))
        })
    }

    /// Waits until all slots are free.
    pub(crate) async fn all_free(&self) {
        while self.taken.get() > 0 {
            self.freed.notified().await;
        }
    }
}

/// A slot that is taken, and that is released when the value is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Rc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.set(self.0.taken.get() - 1);
        self.0.freed.notify_one();
    }
}

/// Returns the number of descriptors that this process may open; `None` if the system does not
/// report it.
fn descriptors() -> Option<usize> {
    soft_limit(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

/// Returns the soft limit of open descriptors in the text of `/proc/self/limits`, see
/// `proc_pid_limits(5)`.
fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|l| l.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_the_first_figure() {
        let line = "Limit  Soft\nMax open files            1024                 524288  files\n";
        assert_eq!(soft_limit(line), Some(1024));
        assert_eq!(soft_limit("Max open files  unlimited unlimited files"), None);
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn a_slot_is_free_again_when_its_holder_is_gone() {
        let slots = Slots::of(1);
        let slot = slots.take().expect("it is free");
        assert!(slots.take().is_none());
        drop(slot);
        assert!(slots.take().is_some());
    }
}
