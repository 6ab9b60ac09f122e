//! Keeps the state of this process separate from that of a forked child, in memory that `fork`
//! clears.
//!
//! Only the thread that forks continues in the child. The child shares the epoll set with its
//! parent, so events that the child took out of it would be lost for the parent. Therefore the
//! child begins with its own empty table. The child may watch connections at once, and the parent's
//! watches continue.
//!
//! The pointer to the table is on a page with `MADV_WIPEONFORK`, so the child reads a null pointer.
//! The child never uses the parent's table again. A thread that does not exist in the child may
//! have held the lock of that table.
//!
//! Handlers of `pthread_atfork` that hold the lock during the fork would not be sufficient. Suppose
//! that another thread starts its first watch after a fork has looked for handlers, but before it
//! forks. Then the child has a lock that no thread releases.
//!
//! One such handler closes the child's copy of the epoll set at once, and does nothing else
//! (`epoll.rs`). If the handler is missed, the child's copies of the descriptors stay open.
#![allow(unsafe_code, reason = "memory that the kernel empties")]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use crate::epoll::Set;
use crate::sys;
use crate::table::Shared;

/// The page that a fork empties, or null until the first watch. Only the first word of the page is
/// used.
static PAGE: AtomicPtr<AtomicPtr<Shared>> = AtomicPtr::new(ptr::null_mut());
/// The epoll set that a forked child closes, or -1 if there is none. It is stored after `GUARD` and
/// `COOKIE`. A child that is forked between these stores may find one set with the guard of
/// another, and then closes nothing.
static SET: AtomicI32 = AtomicI32::new(-1);
/// The descriptor of the guard of the epoll set in `SET`.
static GUARD: AtomicI32 = AtomicI32::new(-1);
/// The socket cookie of the guard in `GUARD`.
static COOKIE: AtomicU64 = AtomicU64::new(0);

/// Returns the table of this process, or `None` before the first watch. This allocates nothing, so
/// a signal handler may call it.
pub(crate) fn existing() -> Option<&'static Shared> {
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: null, or a page that is never unmapped, because `page` stores no other pointer. A
    // page of zeros, as it is at first and in a child, is a valid atomic that is null.
    let table = unsafe { page.as_ref() }?.load(Ordering::Acquire);
    // SAFETY: null, or a table that was leaked, because `own` stores no other pointer.
    unsafe { table.as_ref() }
}

/// Returns the table of watched connections of this process. Creates the table if there is none.
pub(crate) fn own() -> io::Result<&'static Shared> {
    if let Some(table) = existing() {
        return Ok(table);
    }
    let place = page()?;
    let table = Box::into_raw(Box::<Shared>::default());
    match place.compare_exchange(ptr::null_mut(), table, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the table was just allocated and is leaked here, so it lives as long as the
        // process.
        Ok(_) => Ok(unsafe { &*table }),
        Err(other) => {
            // SAFETY: no other thread has seen the table.
            drop(unsafe { Box::from_raw(table) });
            // SAFETY: another thread has leaked this table.
            Ok(unsafe { &*other })
        }
    }
}

/// Returns whether this is the table of this process. It is false in a child that was forked on
/// the watching thread.
pub(crate) fn is_own(table: &Shared) -> bool {
    existing().is_some_and(|own| ptr::eq(own, table))
}

fn page() -> io::Result<&'static AtomicPtr<Shared>> {
    if PAGE.load(Ordering::Acquire).is_null() {
        let page = sys::page_that_fork_empties()?.cast();
        let first =
            PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            sys::unmap_page(page.cast());
        }
        sys::after_fork(in_child)?;
    }
    // SAFETY: not null, so it is a page as in `existing`.
    Ok(unsafe { &*PAGE.load(Ordering::Acquire) })
}

/// Records the epoll set that the child of a fork closes.
pub(crate) fn record_set(set: Set) {
    GUARD.store(set.guard, Ordering::Release);
    COOKIE.store(set.cookie, Ordering::Release);
    SET.store(set.epoll, Ordering::Release);
}

/// Records that there is no epoll set, so the child of a fork closes nothing.
pub(crate) fn clear_set() {
    SET.store(-1, Ordering::Release);
}

/// Closes the recorded epoll set in the child of a fork. The handler may be registered, and so
/// called, more than once.
extern "C" fn in_child() {
    let epoll = SET.swap(-1, Ordering::AcqRel);
    if epoll >= 0 {
        let (guard, cookie) = (GUARD.load(Ordering::Acquire), COOKIE.load(Ordering::Acquire));
        Set { epoll, guard, cookie }.close();
    }
}
