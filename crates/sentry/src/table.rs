//! The table of watches of the process.
//!
//! **States.** A watched connection has an entry in the table, under the number of its descriptor,
//! and an entry in the epoll set. The table entry ends in one of three ways: the disconnect has
//! been reported, the connection is unwatched, or another connection is watched under the same
//! number.
//!
//! Each table entry has a number of its own, the generation. Events of an entry that has ended are
//! ignored. If a descriptor was closed without being unwatched, its number may refer to another
//! socket. The socket's cookie shows that.
//!
//! **Processes.** Each process has its own table: a child of `fork` begins with an empty one
//! (`process.rs`).
//!
//! **Ownership.** The program owns the descriptors, and the table only contains their numbers. The
//! epoll set lives as long as the process, or until the program closes it (`epoll.rs`). The content
//! of an entry is dropped after the lock is released, because the waker of a future may run
//! arbitrary code then. There is one entry per descriptor, so the limit on open files bounds the
//! table.
//!
//! **Lock.** The lock is held for changes of the table, `epoll_ctl`, the first check of a
//! connection, and the start of the thread. It is never held while waiting for the kernel,
//! reporting an event or running foreign code. `reporting` is the event that the thread
//! (`watcher.rs`) reports without the lock; [`unwatch`](crate::unwatch) waits for its end.
//!
//! **Generations** have 32 bits. Two watches could be confused only if three things happen: an
//! event stays in the kernel while the process begins 2³² further watches, and the last of these
//! has the same descriptor and the same socket.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::epoll::Set;
use crate::interest::{Interest, Reason, Refused};
use crate::key::Key;
use crate::notice::Notice;
use crate::pending_events::PendingEvents;
use crate::sys;

/// The means by which an event is reported to the user of a watch.
#[derive(Clone, Debug)]
pub(crate) enum Notifier {
    Future(Arc<PendingEvents>),
    Notice(Notice),
}

/// The entry of a watched connection in the table.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) generation: u32,
    pub(crate) cookie: u64,
    pub(crate) interest: Interest,
    pub(crate) notifier: Notifier,
}

pub(crate) type Entries = HashMap<RawFd, Entry, BuildHasherDefault<DefaultHasher>>;

/// The table of watches with its lock, and a condition variable.
#[derive(Default)]
pub(crate) struct Shared {
    table: Mutex<Table>,
    /// Notified when the report of an event has ended.
    pub(crate) reported: Condvar,
}

#[derive(Default)]
pub(crate) struct Table {
    /// The epoll set, or `None` if there is no set yet or the program has closed it.
    pub(crate) set: Option<Set>,
    /// The watching thread, which waits on `set`.
    pub(crate) thread: Option<libc::pthread_t>,
    pub(crate) entries: Entries,
    /// The event that the watching thread is reporting now, without the lock.
    pub(crate) reporting: Option<(Key, Reason)>,
    /// The number of threads in [`unwatch`](crate::unwatch) that wait for the end of the report in
    /// `reporting`.
    pub(crate) waiting: u32,
}

impl Shared {
    /// Locks the table. Code under the lock cannot panic, so a poisoned table is intact.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    pub(crate) fn enter(
        &self,
        set: Set,
        key: Key,
        cookie: u64,
        interest: Interest,
    ) -> Result<(), Refused> {
        match sys::epoll_add(set.epoll, key.fd, key.into(), interest.flags()) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            result => return Ok(result?),
        }
        if self.entries.get(&key.fd).is_some_and(|entry| entry.cookie == cookie) {
            return Err(Refused::Watched);
        }
        // The epoll entry belongs to a descriptor that was closed while another process held the
        // socket. The socket is now open again under its old number.
        Ok(sys::epoll_change(set.epoll, key.fd, key.into(), interest.flags())?)
    }

    pub(crate) fn remove(&mut self, fd: RawFd) -> Option<Entry> {
        let entry = self.entries.remove(&fd);
        if let (Some(_), Some(set)) = (&entry, self.set)
            && set.is_ours()
        {
            sys::epoll_remove(set.epoll, fd);
        }
        entry
    }
}
