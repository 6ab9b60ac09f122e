//! The thread that waits for all disconnects of the process and reports them.
//!
//! The first watch starts the thread, which lives as long as the process. It blocks all signals, so
//! no signal handler of the program runs on it.

use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, thread};

use crate::epoll::Set;
use crate::interest::Reason;
use crate::key::Key;
use crate::notice::Delivery;
use crate::process;
use crate::sys::{self, Flags, Unsignalled};
use crate::table::{Entries, Notifier, Shared, Table};

/// The maximum number of events that are taken from the kernel at once.
const BATCH: usize = 64;
/// The stack size of the watching thread in bytes. Functions of the program run on this stack.
const STACK: usize = 256 * 1024;
/// The pause in milliseconds before the next attempt if the signal queue is full.
const PAUSE_MS: i32 = 1;

/// Returns the epoll set. Creates the set and starts its thread if necessary.
pub(crate) fn ensure_started(shared: &'static Shared, table: &mut Table) -> io::Result<Set> {
    if let Some(set) = table.set {
        return Ok(set);
    }
    let set = Set::new()?;
    // The new thread inherits the blocked signals.
    let unsignalled = Unsignalled::now();
    let thread = thread::Builder::new()
        .name("bywash-sentry".into())
        .stack_size(STACK)
        .spawn(move || run(shared, set))
        .inspect_err(|_| set.close())?;
    drop(unsignalled);
    table.thread = Some(thread.as_pthread_t());
    table.set = Some(set);
    process::record_set(set);
    Ok(set)
}

fn run(shared: &Shared, set: Set) {
    let mut events = [sys::NO_EVENT; BATCH];
    // A closed set stays alive while a thread waits on it, and this thread may wake from it.
    while set.is_ours() {
        let count = match sys::epoll_wait(set.epoll, &mut events) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut delivery = Delivery::Done;
        for event in &events[..count] {
            let Some((key, reason, notifier)) = take(shared, event) else {
                continue;
            };
            let this = report(key, reason, &notifier);
            if this == Delivery::Retry {
                delivery = Delivery::Retry;
            }
            if !done(shared, key, reason, this) {
                return;
            }
        }
        if delivery == Delivery::Retry {
            sys::pause_ms(PAUSE_MS);
        }
    }
    handle_lost_set(shared);
}

/// Returns the key of the watch that an epoll event belongs to, the event to report, and the
/// watch's notifier. Returns `None` if there is nothing to report. The report is under way until
/// [`done`] is called.
fn take(shared: &Shared, event: &libc::epoll_event) -> Option<(Key, Reason, Notifier)> {
    let (key, flags) = (Key::from(event.u64), effective_flags(event));
    let mut table = shared.lock();
    let entry = table.entries.get(&key.fd).filter(|entry| entry.generation == key.generation)?;
    let reason = entry.interest.reason(flags)?;
    let notifier = entry.notifier.clone();
    // The descriptor was closed without being unwatched while another process kept the old socket
    // open. Its number now refers to another socket.
    if sys::cookie_of(key.fd) != entry.cookie {
        let entry = table.entries.remove(&key.fd);
        drop(table);
        drop(entry);
        return None;
    }
    table.reporting = Some((key, reason));
    Some((key, reason, notifier))
}

/// Returns the flags of an event, without the flag `IN` if it only stands for a FIN.
fn effective_flags(event: &libc::epoll_event) -> Flags {
    let flags = Flags(event.events);
    let is_in_doubt = flags.has(Flags::IN | Flags::RDHUP);
    if is_in_doubt && !sys::has_bytes(Key::from(event.u64).fd) { flags & !Flags::IN } else { flags }
}

/// Reports an event to the user of a watch. A waker that panics does not affect other watches.
fn report(key: Key, reason: Reason, notifier: &Notifier) -> Delivery {
    let reporting = || match notifier {
        Notifier::Notice(notice) => notice.report(key.into(), reason),
        Notifier::Future(pending) => {
            pending.report(reason);
            Delivery::Done
        }
    };
    catch_unwind(AssertUnwindSafe(reporting)).unwrap_or(Delivery::Done)
}

/// Ends the report of an event. If the event was the disconnect, ends the watch too. Returns false
/// if the calling thread is no longer the thread of the table. That happens if the set was lost in
/// the meantime, or if a called function has forked the process.
fn done(shared: &Shared, key: Key, reason: Reason, delivery: Delivery) -> bool {
    if !process::is_own(shared) {
        return false;
    }
    let mut table = shared.lock();
    if table.reporting == Some((key, reason)) {
        table.reporting = None;
    }
    if table.waiting > 0 {
        shared.reported.notify_all();
    }
    if table.thread != Some(sys::this_thread()) {
        return false;
    }
    let ours = table.set.filter(|set| set.is_ours());
    let entry = table.entries.get_mut(&key.fd).filter(|entry| entry.generation == key.generation);
    let (Some(ours), Some(entry)) = (ours, entry) else { return true };
    if delivery == Delivery::Done && reason != Reason::Data {
        sys::epoll_remove(ours.epoll, key.fd);
        let entry = table.entries.remove(&key.fd);
        drop(table);
        drop(entry);
        return true;
    }
    if delivery == Delivery::Done {
        entry.interest.data = false;
    }
    // After this call, the kernel signals again the conditions that already hold. So an event that
    // could not be reported is retried.
    let _ = sys::epoll_change(ours.epoll, key.fd, key.into(), entry.interest.flags());
    true
}

/// Handles the loss of the epoll set, whose descriptors the program has closed. All watches are
/// lost with it.
fn handle_lost_set(shared: &Shared) {
    let mut table = shared.lock();
    if table.thread == Some(sys::this_thread()) {
        let entries = forget_set(&mut table);
        drop(table);
        drop(entries);
    }
}

/// Resets the table, so that the next watch creates a new epoll set. Returns the entries for the
/// caller to drop. A thread that still waits on the old set finds no entry for its events.
pub(crate) fn forget_set(table: &mut Table) -> Entries {
    if let Some(set) = table.set.take() {
        process::clear_set();
        set.close();
    }
    table.thread = None;
    mem::take(&mut table.entries)
}
