//! The thread that waits for all departures of the process, and tells each of them.
//!
//! It is started by the first watch, takes no signals (a handler of the program's never runs on
//! it), and lives as long as the process.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::thread::JoinHandleExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, thread};

use crate::interest::Reason;
use crate::notice::Told;
use crate::process;
use crate::sys::{self, Flags, Unsignalled};
use crate::table::{Key, Seats, Shared, Table, Tell};

/// Departures taken from the kernel at once.
const BATCH: usize = 64;
/// The functions of the program that it calls run on this.
const STACK: usize = 256 * 1024;
/// For how long nobody is told when the queue of signals is full.
const PAUSE_MS: i32 = 1;

/// The epoll set with its thread, which is started if it does not run.
pub(crate) fn started(shared: &'static Shared, table: &mut Table) -> io::Result<RawFd> {
    if let Some(set) = &table.set {
        return Ok(set.as_raw_fd());
    }
    let set = sys::epoll_create()?;
    let number = set.as_raw_fd();
    // It inherits that it takes no signals.
    let unsignalled = Unsignalled::now();
    let thread = thread::Builder::new()
        .name("bywash-sentry".into())
        .stack_size(STACK)
        .spawn(move || run(shared, number))?;
    drop(unsignalled);
    table.thread = Some(thread.as_pthread_t());
    table.set = Some(set);
    process::set_is(number);
    Ok(number)
}

fn run(shared: &Shared, set: RawFd) {
    let mut events = [sys::NO_EVENT; BATCH];
    loop {
        let count = match sys::epoll_wait(set, &mut events) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return set_is_lost(shared),
        };
        let mut told = Told::Yes;
        for event in &events[..count] {
            let Some((key, reason, tell)) = take(shared, event) else {
                continue;
            };
            let this = tell_of(key, reason, &tell);
            if this == Told::NotYet {
                told = Told::NotYet;
            }
            if !done(shared, key, reason, this) {
                return;
            }
        }
        if told == Told::NotYet {
            sys::pause_ms(PAUSE_MS);
        }
    }
}

/// What an event is about, if anybody still wants to know. From here to [`done`] it is being told.
fn take(shared: &Shared, event: &libc::epoll_event) -> Option<(Key, Reason, Tell)> {
    let (key, flags) = (Key::from(event.u64), Flags(event.events));
    let mut table = shared.lock();
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
fn done(shared: &Shared, key: Key, reason: Reason, told: Told) -> bool {
    if !process::is_own(shared) {
        return false;
    }
    let mut table = shared.lock();
    if table.telling == Some((key, reason)) {
        table.telling = None;
    }
    if table.waiting > 0 {
        shared.told.notify_all();
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
fn set_is_lost(shared: &Shared) {
    let mut table = shared.lock();
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
    process::set_is(-1);
    mem::take(&mut table.seats)
}
