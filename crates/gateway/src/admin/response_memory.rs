//! Bounds the memory of all answers to operators that have not been read yet.
//!
//! An answer may have some megabytes, and its reader may be slow. If an answer would exceed the
//! bound, the gateway answers instead that the client should retry.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bywash_api::Code;

use super::answer::Refused;
use crate::process::memory;
use crate::process::memory::Memory;
use crate::request::reply::{Answer, Reply};

/// The maximum total size in bytes of all counted answers.
const MOST: usize = 64 << 20;
/// The maximum size in bytes of an answer that is not counted. Such an answer is not added to the
/// total, because one of them per connection takes little memory.
const SMALL: usize = 64 << 10;

/// The total size in bytes of the counted answers of all connections.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// The memory of one connection's last answer, while it is counted.
#[derive(Debug)]
pub(super) struct ResponseMemory {
    /// The size of the answer in bytes; 0 if it is not counted.
    bytes: Cell<usize>,
    /// The memory charged for the answer to the gateway's memory budget.
    counted: RefCell<memory::MemoryReservation>,
}

impl ResponseMemory {
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self { bytes: Cell::default(), counted: RefCell::new(memory.hold(0)) }
    }

    /// Adds the size of this answer to the total of all connections. Returns an error, and adds
    /// nothing, if the total would exceed [`MOST`] bytes. Answers of at most [`SMALL`] bytes are
    /// not added.
    pub(super) fn take(&self, reply: &Reply) -> Result<(), Refused> {
        let Answer::Local(words) = &reply.body else { return Ok(()) };
        if words.len() <= SMALL {
            return Ok(());
        }
        let before = ALL.fetch_add(words.len(), Ordering::Relaxed);
        self.bytes.set(words.len());
        self.counted.borrow_mut().set(words.len());
        if before + words.len() > MOST {
            self.stop_counting();
            let why = "clients of the admin listener have not read too many answers yet: retry in \
                       a few seconds";
            return Err(Refused::new(Code::Unavailable, why));
        }
        Ok(())
    }

    /// Subtracts the size of the answer from the total, because the answer was read or never will
    /// be.
    pub(super) fn stop_counting(&self) {
        ALL.fetch_sub(self.bytes.replace(0), Ordering::Relaxed);
        self.counted.borrow_mut().set(0);
    }
}

impl Drop for ResponseMemory {
    fn drop(&mut self) {
        self.stop_counting();
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
        let (one, other) = (ResponseMemory::new(&memory), ResponseMemory::new(&memory));
        assert!(one.take(&large).is_ok());
        assert!(other.take(&large).is_err(), "that is too much together");
        assert!(other.take(&small).is_ok(), "small ones are nothing");
        one.stop_counting();
        assert!(other.take(&large).is_ok());
        drop(other);
        assert!(one.take(&large).is_ok(), "who has gone holds nothing");
        assert_eq!(memory.used(), 40 << 20);
        drop(one);
        assert_eq!(memory.used(), 0);
    }
}
