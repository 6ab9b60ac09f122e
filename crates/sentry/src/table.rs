//! What the process watches: the table, and the calls that begin and end a watch.
//!
//! **States.** A connection that is watched has a seat in the table, under its descriptor's
//! number, and an entry in the epoll set. A seat ends when its departure was told, when it is
//! unwatched, or when another connection is watched under its number. Each has a number of its
//! own, the generation: what the kernel says of a seat that has ended is for nobody. A descriptor
//! that was closed without being unwatched, and is another socket by now, is known by the socket's
//! cookie.
//!
//! **Whose.** Each process has its own: a child of `fork` begins empty (`process.rs`).
//!
//! **Who frees what.** The program owns the descriptors; the table only has numbers. The set lives
//! as long as the process, or until the program closes it (`epoll.rs`). What a seat holds is dropped after the lock has been given back: the
//! waker of a future may do anything then. There is one seat for a descriptor, so what the process
//! may have open bounds the table.
//!
//! **Under the lock**: the table, `epoll_ctl`, the first look at a connection, and starting the
//! thread. Never: waiting for the kernel, telling anybody, foreign code. `telling` says what
//! the thread (`watcher.rs`) tells without the lock; [`unwatch`] waits for that.
//!
//! Generations are 32 bits: to be mistaken, an event would have to lie in the kernel while the
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

/// Names a watch: the number of the descriptor, and of the watch itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) fd: RawFd,
    pub(crate) generation: u32,
}

/// As the value of a signal: the descriptor lies where C has `sival_int`.
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

/// How whoever asked is told.
#[derive(Clone, Debug)]
pub(crate) enum Tell {
    Future(Arc<News>),
    Notice(Notice),
}

/// A connection that is watched.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) generation: u32,
    pub(crate) cookie: u64,
    pub(crate) interest: Interest,
    pub(crate) tell: Tell,
}

pub(crate) type Seats = HashMap<RawFd, Seat, BuildHasherDefault<DefaultHasher>>;

/// What the process watches, and what is awaited of it.
#[derive(Default)]
pub(crate) struct Shared {
    table: Mutex<Table>,
    /// Something has been told.
    pub(crate) told: Condvar,
}

#[derive(Default)]
pub(crate) struct Table {
    /// The epoll set.
    pub(crate) set: Option<Set>,
    /// Who waits on it.
    pub(crate) thread: Option<libc::pthread_t>,
    pub(crate) seats: Seats,
    /// What the thread tells at this moment, and why.
    pub(crate) telling: Option<(Key, Reason)>,
    /// How many wait for that to be over.
    pub(crate) waiting: u32,
}

/// Of the last watch that was begun, also in the processes that this one is a fork of: what their
/// futures still name is nobody's here.
static GENERATION: AtomicU32 = AtomicU32::new(0);

impl Shared {
    /// Nothing that can panic runs under the lock, so a poisoned one is whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches what the number means now, and tells by a notice.
///
/// # Errors
/// [`Refused`]; nobody is told anything then.
pub fn told_by_notice(fd: RawFd, interest: Interest, notice: Notice) -> Result<(), Refused> {
    notice.check()?;
    register(fd, interest, Tell::Notice(notice)).map(drop)
}

pub(crate) fn register(fd: RawFd, interest: Interest, tell: Tell) -> Result<Key, Refused> {
    if !sys::has_connections(fd)? {
        return Err(Refused::NotAStream);
    }
    let cookie = sys::cookie_of(fd);
    // Dropped after the lock, which is declared after it.
    let _lost;
    let shared = process::own()?;
    let mut table = shared.lock();
    if table.set.is_some_and(|set| !set.is_ours()) {
        _lost = watcher::forget_set(&mut table);
    }
    let ours = watcher::started(shared, &mut table)?;
    table.seats.try_reserve(1).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let key = Key { fd, generation: GENERATION.fetch_add(1, Ordering::Relaxed) };
    // Registered first, looked at second: what happens between the two is seen by the look, and
    // the event that tells it too finds no seat.
    let entered = table.enter(ours, key, cookie, interest);
    if let Err(left) = look(fd, interest) {
        if entered.is_ok() {
            sys::epoll_remove(ours.epoll, fd);
        }
        return Err(left);
    }
    entered?;
    // One that is replaced was of a descriptor that has been closed since.
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
        // Left over from a descriptor that was closed while another process had the socket, and
        // has come back under its old number.
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

/// Whether the other side is there.
fn look(fd: RawFd, interest: Interest) -> Result<(), Refused> {
    let flags = sys::flags_of(fd)?;
    // A connection that has ended is `RDHUP` too; after a reset it has no peer any more.
    if !flags.has(Flags::RDHUP) && !sys::is_connected(fd) {
        return Err(Refused::NotConnected);
    }
    match interest.reason(flags) {
        Some(reason @ (Reason::Ended | Reason::Reset)) => Err(Refused::Left(reason)),
        Some(Reason::Data) | None => Ok(()),
    }
}

/// Ends the watch of a descriptor, and says whether its departure was still to be told. Afterwards
/// nobody is told anything of it: what is just being told has been told by then. Only the watching
/// thread itself, in a function that it calls, does not wait.
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
        // The seat of one whose departure is being told ends when that is over.
        !telling.is_some_and(|(key, why)| key.generation == seat.generation && why != Reason::Data)
    })
}

/// Ends this watch, if it has not ended. Does not wait: a future that is being told at this moment
/// is there as long as that takes.
pub(crate) fn forget(key: Key) {
    let Some(shared) = process::existing() else { return };
    let mut table = shared.lock();
    let is_it = table.seats.get(&key.fd).is_some_and(|seat| seat.generation == key.generation);
    let seat = if is_it { table.remove(key.fd) } else { None };
    drop(table);
    drop(seat);
}
