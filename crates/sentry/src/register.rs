//! Begins and ends watches. `table.rs` describes their states.

use std::io;
use std::os::fd::RawFd;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::interest::{Interest, Reason, Refused};
use crate::key::Key;
use crate::notice::Notice;
use crate::process;
use crate::sys::{self, Flags};
use crate::table::{Entry, Notifier};
use crate::watcher;

/// The generation of the last watch. The count continues in a forked child, so that keys of the
/// parent's futures match no watch in the child.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Watches the socket to which the descriptor `fd` refers now, and reports events by `notice`.
///
/// # Errors
/// If the socket cannot be watched, or its peer has left; see [`Refused`]. Then no event is
/// reported.
pub fn watch_with_notice(fd: RawFd, interest: Interest, notice: Notice) -> Result<(), Refused> {
    notice.check()?;
    register(fd, interest, Notifier::Notice(notice)).map(drop)
}

pub(crate) fn register(fd: RawFd, interest: Interest, notifier: Notifier) -> Result<Key, Refused> {
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
    let ours = watcher::ensure_started(shared, &mut table)?;
    table.entries.try_reserve(1).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let key = Key { fd, generation: GENERATION.fetch_add(1, Ordering::Relaxed) };
    // Register first and check second, so that the check detects a disconnect between the two. The
    // watching thread ignores the event of that disconnect, because the table has no entry for it.
    let entered = table.enter(ours, key, cookie, interest);
    if let Err(left) = check_peer(fd, interest) {
        if entered.is_ok() {
            sys::epoll_remove(ours.epoll, fd);
        }
        return Err(left);
    }
    entered?;
    // A replaced entry belongs to a descriptor that was closed in the meantime.
    let entry = Entry { generation: key.generation, cookie, interest, notifier };
    let before = table.entries.insert(fd, entry);
    drop(table);
    drop(before);
    Ok(key)
}

/// Returns an error if the peer has left or the socket is not connected.
fn check_peer(fd: RawFd, interest: Interest) -> Result<(), Refused> {
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

/// Ends the watch of a descriptor. Returns true if there was a watch whose disconnect had not been
/// reported.
///
/// No event of the watch is reported after this call, because it waits for a report that is under
/// way. There is one exception: a call from within a report, on the watching thread, does not wait.
pub fn unwatch(fd: RawFd) -> bool {
    let Some(shared) = process::existing() else { return false };
    let mut table = shared.lock();
    let reporting = table.reporting.filter(|(key, _)| key.fd == fd);
    let entry = table.remove(fd);
    if reporting.is_some() && table.thread != Some(sys::this_thread()) {
        table.waiting += 1;
        while table.reporting == reporting {
            table = shared.reported.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        table.waiting -= 1;
    }
    drop(table);
    entry.is_some_and(|entry| {
        // If the report was about the disconnect, the watch has ended with the report.
        !reporting
            .is_some_and(|(key, why)| key.generation == entry.generation && why != Reason::Data)
    })
}

/// Ends the watch with this key, if it has not ended. This does not wait for a report that is under
/// way, because the report shares the state of the future and keeps it alive.
pub(crate) fn forget(key: Key) {
    let Some(shared) = process::existing() else { return };
    let mut table = shared.lock();
    let is_it = table.entries.get(&key.fd).is_some_and(|entry| entry.generation == key.generation);
    let entry = if is_it { table.remove(key.fd) } else { None };
    drop(table);
    drop(entry);
}
