//! The thread that waits for all departures of the process, and tells each of them.
//!
//! It is started by the first watch, takes no signals (a handler of the program's never runs on
//! it), and lives as long as the process.
//!
//! **fork**: only the thread that forks lives on in the child, and the epoll set is the parent's
//! too: what the child took out of it, the parent would lose. So the child drops its copy and
//! begins empty; it may watch at once, and the parent's watches go on. The lock is held over the
//! fork, so that what the child finds is whole.

use std::cell::UnsafeCell;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::thread::JoinHandleExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::MutexGuard;
use std::{mem, thread};

use crate::interest::Reason;
use crate::notice::Told;
use crate::sys::{self, Flags, Unsignalled};
use crate::table::{self, Key, Seats, Table, Tell};

/// Departures taken from the kernel at once.
const BATCH: usize = 64;
/// The functions of the program that it calls run on this.
const STACK: usize = 256 * 1024;
/// For how long nobody is told when the queue of signals is full.
const PAUSE_MS: i32 = 1;

/// The epoll set with its thread, which is started if it does not run.
pub(crate) fn started(table: &mut Table) -> io::Result<RawFd> {
    if let Some(set) = &table.set {
        return Ok(set.as_raw_fd());
    }
    if !table.forks_are_seen {
        sys::around_fork(before_fork, in_parent, in_child)?;
        table.forks_are_seen = true;
    }
    let set = sys::epoll_create()?;
    let number = set.as_raw_fd();
    // It inherits that it takes no signals.
    let unsignalled = Unsignalled::now();
    let thread = thread::Builder::new()
        .name("bywash-sentry".into())
        .stack_size(STACK)
        .spawn(move || run(number))?;
    drop(unsignalled);
    table.thread = Some(thread.as_pthread_t());
    table.set = Some(set);
    Ok(number)
}

fn run(set: RawFd) {
    let mut events = [sys::NO_EVENT; BATCH];
    loop {
        let count = match sys::epoll_wait(set, &mut events) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return set_is_lost(),
        };
        let mut told = Told::Yes;
        for event in &events[..count] {
            let Some((key, reason, tell)) = take(Key::from(event.u64), Flags(event.events)) else {
                continue;
            };
            let this = tell_of(key, reason, &tell);
            if this == Told::NotYet {
                told = Told::NotYet;
            }
            if !done(key, reason, this) {
                return;
            }
        }
        if told == Told::NotYet {
            sys::pause_ms(PAUSE_MS);
        }
    }
}

/// What an event is about, if anybody still wants to know. From here to [`done`] it is being told.
fn take(key: Key, flags: Flags) -> Option<(Key, Reason, Tell)> {
    let mut table = table::lock();
    let seat = table.seats.get(&key.fd).filter(|seat| seat.generation == key.generation)?;
    let reason = seat.interest.reason(flags)?;
    let tell = seat.tell.clone();
    // Closed without being unwatched, kept alive by another process, and now another socket.
    if sys::cookie_of(key.fd) != seat.cookie {
        let seat = table.seats.remove(&key.fd);
        drop(table);
        drop(seat);
        return None;
    }
    table.telling = Some((key, reason));
    Some((key, reason, tell))
}

/// A waker that panics takes nobody's watches with it.
fn tell_of(key: Key, reason: Reason, tell: &Tell) -> Told {
    let telling = || match tell {
        Tell::Notice(notice) => notice.tell(key.into(), reason),
        Tell::Future(news) => {
            news.tell(reason);
            Told::Yes
        }
    };
    catch_unwind(AssertUnwindSafe(telling)).unwrap_or(Told::Yes)
}

/// Ends the telling; and the seat, if that was the departure. False: this is no longer the thread
/// of the table: the set was lost meanwhile, or this is the child of a fork in what was called.
fn done(key: Key, reason: Reason, told: Told) -> bool {
    let mut table = table::lock();
    if table.telling == Some((key, reason)) {
        table.telling = None;
    }
    if table.waiting > 0 {
        table::TOLD.notify_all();
    }
    if table.thread != Some(sys::this_thread()) {
        return false;
    }
    let epoll = table.set.as_ref().map(AsRawFd::as_raw_fd);
    let seat = table.seats.get_mut(&key.fd).filter(|seat| seat.generation == key.generation);
    let (Some(epoll), Some(seat)) = (epoll, seat) else { return true };
    if told == Told::Yes && reason != Reason::Data {
        sys::epoll_remove(epoll, key.fd);
        let seat = table.seats.remove(&key.fd);
        drop(table);
        drop(seat);
        return true;
    }
    if told == Told::Yes {
        seat.interest.data = false;
    }
    // Reports at once what is so already: that is how what could not be told is tried again.
    let _ = sys::epoll_change(epoll, key.fd, key.into(), seat.interest.flags());
    true
}

/// Somebody has closed our descriptor. Those that were watched are lost.
fn set_is_lost() {
    let mut table = table::lock();
    if table.thread == Some(sys::this_thread()) {
        let seats = forget_set(&mut table);
        drop(table);
        drop(seats);
    }
}

/// The next watch begins anew. The number of the set may be another file's by now: it is not
/// closed. A thread that still waits on the set finds no seat for what it hears.
pub(crate) fn forget_set(table: &mut Table) -> Seats {
    let _ = table.set.take().map(IntoRawFd::into_raw_fd);
    table.thread = None;
    mem::take(&mut table.seats)
}

/// The lock, and quiet from signals, over a fork.
struct Held(UnsafeCell<Option<(MutexGuard<'static, Table>, Unsignalled)>>);

#[allow(unsafe_code, reason = "a guard that is taken in one function and given back in another")]
// SAFETY: the cell is only touched by whoever holds the table's lock, so by one thread at a time:
// `before_fork` after it has got it, the other two while it is still held by their own thread. In
// the child that is the only thread, the one that forked.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

#[allow(unsafe_code, reason = "see Held")]
fn held(
    content: Option<(MutexGuard<'static, Table>, Unsignalled)>,
) -> Option<(MutexGuard<'static, Table>, Unsignalled)> {
    // SAFETY: the caller has the lock, see `Held`; the reference ends with this statement.
    mem::replace(unsafe { &mut *HELD.0.get() }, content)
}

extern "C" fn before_fork() {
    let unsignalled = Unsignalled::now();
    held(Some((table::lock(), unsignalled)));
}

extern "C" fn in_parent() {
    drop(held(None));
}

extern "C" fn in_child() {
    if let Some((mut table, unsignalled)) = held(None) {
        table::begin_empty(&mut table);
        drop(table);
        drop(unsignalled);
    }
}
