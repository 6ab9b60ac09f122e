//! The locks that are compared, behind one trait.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// Something that lets one thread at a time at what it keeps.
pub(super) trait Lock<T> {
    fn new(kept: T) -> Self;

    fn locked<R>(&self, act: impl FnOnce(&mut T) -> R) -> R;
}

/// None: for one thread.
pub(super) type Alone<T> = RefCell<T>;

impl<T> Lock<T> for Alone<T> {
    fn new(kept: T) -> Self {
        Self::new(kept)
    }

    fn locked<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.borrow_mut())
    }
}

impl<T> Lock<T> for Mutex<T> {
    fn new(kept: T) -> Self {
        Self::new(kept)
    }

    fn locked<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Lock<T> for parking_lot::Mutex<T> {
    fn new(kept: T) -> Self {
        Self::new(kept)
    }

    fn locked<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.lock())
    }
}
