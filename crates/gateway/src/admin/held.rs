//! What answers hold in memory until they are read, all together within a bound.
//!
//! An answer may be some megabytes, and its reader take her time. Whoever would make it too much is asked to come again.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bywash_api::Code;

use super::answer::Refused;
use crate::memory::{self, Memory};
use crate::reply::{Answer, Reply};

/// Of answers that are not small, together.
const MOST: usize = 64 << 20;
/// Of these as many as there are connections are nothing.
const SMALL: usize = 64 << 10;

/// Of all connections.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// What one connection's last answer holds.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Cell<usize>,
    /// The same, as it counts against the budget of memory.
    counted: RefCell<memory::Held>,
}

impl Held {
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self { bytes: Cell::default(), counted: RefCell::new(memory.hold(0)) }
    }

    /// It holds this one now.
    pub(super) fn take(&self, reply: &Reply) -> Result<(), Refused> {
        let Answer::Local(words) = &reply.body else { return Ok(()) };
        if words.len() <= SMALL {
            return Ok(());
        }
        let before = ALL.fetch_add(words.len(), Ordering::Relaxed);
        self.bytes.set(words.len());
        self.counted.borrow_mut().set(words.len());
        if before + words.len() > MOST {
            self.give_back();
            let why = "others have not read their answers yet: ask again in some seconds";
            return Err(Refused::new(Code::Unavailable, why));
        }
        Ok(())
    }

    /// It was read, or nobody will.
    pub(super) fn give_back(&self) {
        ALL.fetch_sub(self.bytes.replace(0), Ordering::Relaxed);
        self.counted.borrow_mut().set(0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::admin::answer::fields;

    #[test]
    fn what_is_not_read_is_bounded_together_and_room_comes_back() {
        let reply = |bytes| Reply::local(StatusCode::OK, fields("text/plain"), vec![b'x'; bytes]);
        let (large, small) = (reply(40 << 20), reply(SMALL));
        let memory = Arc::new(Memory::new(1 << 30));
        let (one, other) = (Held::new(&memory), Held::new(&memory));
        assert!(one.take(&large).is_ok());
        assert!(other.take(&large).is_err(), "that is too much together");
        assert!(other.take(&small).is_ok(), "small ones are nothing");
        one.give_back();
        assert!(other.take(&large).is_ok());
        drop(other);
        assert!(one.take(&large).is_ok(), "who has gone holds nothing");
        assert_eq!(memory.used(), 40 << 20);
        drop(one);
        assert_eq!(memory.used(), 0);
    }
}
