//! The table of watches of the process, and the functions that begin and end a watch.
//!
//! **States.** A watched connection has an entry in the table, under the number of its descriptor,
//! and an entry in the epoll set. The table entry ends when the disconnect has been reported, when
//! it is unwatched, or when another connection is watched under the same number. Each entry has a
//! number of its own, the generation: events of an entry that has ended are ignored. If a
//! descriptor was closed without being unwatched and its number now refers to another socket, the
//! socket's cookie reveals it.
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
//! reporting an event or running foreign code. `telling` is the event that the thread
//! (`watcher.rs`) reports without the lock; [`unwatch`] waits for its end.
//!
//! **Generations** have 32 bits. For a mix-up, an event would have to stay in the kernel while the
//! process begins 2³² further watches, and then meet the same descriptor and the same socket.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::epoll::Set;
use crate::interest::{Interest, Reason, Refused};
use crate::notice::Notice;
use crate::process;
use crate::sys::{self, Flags};
use crate::watcher;
use crate::watching::News;

/// Identifies a watch by the number of its descriptor and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) fd: RawFd,
    pub(crate) generation: u32,
}

/// Converts to the value of a signal, with the descriptor where C has `sival_int`.
impl From<Key> for u64 {
    fn from(key: Key) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&key.fd.to_ne_bytes());
        bytes[4..].copy_from_slice(&key.generation.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }
}

impl From<u64> for Key {
    fn from(value: u64) -> Key {
        let [a, b, c, d, generation @ ..] = value.to_ne_bytes();
        let fd = RawFd::from_ne_bytes([a, b, c, d]);
        Key { fd, generation: u32::from_ne_bytes(generation) }
    }
}

/// The way in which an event is reported.
#[derive(Clone, Debug)]
pub(crate) enum Tell {
    Future(Arc<News>),
    Notice(Notice),
}

/// A watched connection.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) generation: u32,
    pub(crate) cookie: u64,
    pub(crate) interest: Interest,
    pub(crate) tell: Tell,
}

pub(crate) type Seats = HashMap<RawFd, Seat, BuildHasherDefault<DefaultHasher>>;

/// The table of watches, and the condition variable for its users.
#[derive(Default)]
pub(crate) struct Shared {
    table: Mutex<Table>,
    /// Notified when an event has been reported.
    pub(crate) told: Condvar,
}

#[derive(Default)]
pub(crate) struct Table {
    /// The epoll set.
    pub(crate) set: Option<Set>,
    /// The thread that waits on it.
    pub(crate) thread: Option<libc::pthread_t>,
    pub(crate) seats: Seats,
    /// The event that the thread is reporting now.
    pub(crate) telling: Option<(Key, Reason)>,
    /// The number of threads that wait for the end of that report.
    pub(crate) waiting: u32,
}

/// The generation of the last watch. It continues in a forked child, so that keys of the parent's
/// futures match no watch there.
static GENERATION: AtomicU32 = AtomicU32::new(0);

impl Shared {
    /// Locks the table. Code under the lock cannot panic, so a poisoned table is intact.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches the socket to which the descriptor refers now, and reports events by a notice.
///
/// # Errors
/// [`Refused`]. No event will be reported then.
pub fn told_by_notice(fd: RawFd, interest: Interest, notice: Notice) -> Result<(), Refused> {
    notice.check()?;
    register(fd, interest, Tell::Notice(notice)).map(drop)
}

pub(crate) fn register(fd: RawFd, interest: Interest, tell: Tell) -> Result<Key, Refused> {
    if !sys::has_connections(fd)? {
        return Err(Refused::NotAStream);
    }
    let cookie = sys::cookie_of(fd);
    // Declared before the lock, so that it is dropped after the lock is released.
    let _lost;
    let shared = process::own()?;
    let mut table = shared.lock();
    if table.set.is_some_and(|set| !set.is_ours()) {
        _lost = watcher::forget_set(&mut table);
    }
    let ours = watcher::started(shared, &mut table)?;
    table.seats.try_reserve(1).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let key = Key { fd, generation: GENERATION.fetch_add(1, Ordering::Relaxed) };
    // Register first and check second: the check detects an event between the two, and the reported
    // event finds no entry.
    let entered = table.enter(ours, key, cookie, interest);
    if let Err(left) = look(fd, interest) {
        if entered.is_ok() {
            sys::epoll_remove(ours.epoll, fd);
        }
        return Err(left);
    }
    entered?;
    // A replaced entry belongs to a descriptor that has been closed since.
    let seat = Seat { generation: key.generation, cookie, interest, tell };
    let before = table.seats.insert(fd, seat);
    drop(table);
    drop(before);
    Ok(key)
}

impl Table {
    fn enter(&self, set: Set, key: Key, cookie: u64, interest: Interest) -> Result<(), Refused> {
        match sys::epoll_add(set.epoll, key.fd, key.into(), interest.flags()) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            result => return Ok(result?),
        }
        if self.seats.get(&key.fd).is_some_and(|seat| seat.cookie == cookie) {
            return Err(Refused::Watched);
        }
        // The epoll entry belongs to a descriptor that was closed while another process held the
        // socket. The socket is now open again under its old number.
        Ok(sys::epoll_change(set.epoll, key.fd, key.into(), interest.flags())?)
    }

    fn remove(&mut self, fd: RawFd) -> Option<Seat> {
        let seat = self.seats.remove(&fd);
        if let (Some(_), Some(set)) = (&seat, self.set)
            && set.is_ours()
        {
            sys::epoll_remove(set.epoll, fd);
        }
        seat
    }
}

/// Checks whether the peer is present.
fn look(fd: RawFd, interest: Interest) -> Result<(), Refused> {
    let flags = sys::flags_of(fd)?;
    // An ended connection has `RDHUP` too. After a reset, the socket has no peer any more.
    if !flags.has(Flags::RDHUP) && !sys::is_connected(fd) {
        return Err(Refused::NotConnected);
    }
    match interest.reason(flags) {
        Some(reason @ (Reason::Ended | Reason::Reset)) => Err(Refused::Left(reason)),
        Some(Reason::Data) | None => Ok(()),
    }
}

/// Ends the watch of a descriptor. Returns whether its disconnect had not been reported.
///
/// No event of the watch is reported after this call: it waits for a report that is under way. Only
/// the watching thread itself does not wait, in a function that it calls.
pub fn unwatch(fd: RawFd) -> bool {
    let Some(shared) = process::existing() else { return false };
    let mut table = shared.lock();
    let telling = table.telling.filter(|(key, _)| key.fd == fd);
    let seat = table.remove(fd);
    if telling.is_some() && table.thread != Some(sys::this_thread()) {
        table.waiting += 1;
        while table.telling == telling {
            table = shared.told.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        table.waiting -= 1;
    }
    drop(table);
    seat.is_some_and(|seat| {
        // The entry of a disconnect that is being reported ends with that report.
        !telling.is_some_and(|(key, why)| key.generation == seat.generation && why != Reason::Data)
    })
}

/// Ends this watch, if it has not ended. Does not wait: a future stays valid until a report that is
/// under way has ended.
pub(crate) fn forget(key: Key) {
    let Some(shared) = process::existing() else { return };
    let mut table = shared.lock();
    let is_it = table.seats.get(&key.fd).is_some_and(|seat| seat.generation == key.generation);
    let seat = if is_it { table.remove(key.fd) } else { None };
    drop(table);
    drop(seat);
}
