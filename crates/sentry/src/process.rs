//! What belongs to this process and not to the child of a fork: a place in memory that `fork`
//! empties.
//!
//! Only the thread that forks lives on in the child, and the epoll set is the parent's too: what
//! the child took out of it, the parent would lose. So the child begins with a table of its own;
//! it may watch at once, and the parent's watches go on.
//!
//! The table hangs on a page with `MADV_WIPEONFORK`: in the child it reads as null. The parent's
//! is left there as it is, with its lock, which some thread may have held that is not there any
//! more, and is never touched again. Handlers of `pthread_atfork` that hold the lock over the fork
//! do not do: a first watch that another thread begins after a fork has looked for handlers, and
//! before it forks, leaves the child with a lock that nobody gives back. One such handler closes
//! the child's copy of the epoll set, at once, and only what is ours (`epoll.rs`); if it is missed,
//! the descriptors stay open.
#![allow(unsafe_code, reason = "memory that the kernel empties")]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use crate::epoll::Set;
use crate::sys;
use crate::table::Shared;

/// The page, of which the first word is used: null until somebody watches.
static PAGE: AtomicPtr<AtomicPtr<Shared>> = AtomicPtr::new(ptr::null_mut());
/// The epoll set, for the child to close: below 0 if there is none. Written last; a child that
/// finds it with a guard of another set closes nothing.
static SET: AtomicI32 = AtomicI32::new(-1);
static GUARD: AtomicI32 = AtomicI32::new(-1);
static COOKIE: AtomicU64 = AtomicU64::new(0);

/// The table of this process, if it has one. Takes no memory: a handler of a signal may ask.
pub(crate) fn existing() -> Option<&'static Shared> {
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: null, or a page that is never unmapped: `page` stores no other. A page of zeros, as
    // it is at first and in a child, is an atomic that is null.
    let table = unsafe { page.as_ref() }?.load(Ordering::Acquire);
    // SAFETY: null, or a table that was leaked: `own` stores no other.
    unsafe { table.as_ref() }
}

/// The table of this process.
pub(crate) fn own() -> io::Result<&'static Shared> {
    if let Some(table) = existing() {
        return Ok(table);
    }
    let place = page()?;
    let table = Box::into_raw(Box::<Shared>::default());
    match place.compare_exchange(ptr::null_mut(), table, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it was just made, and lives as long as the process from here on.
        Ok(_) => Ok(unsafe { &*table }),
        Err(other) => {
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(table) });
            // SAFETY: leaked by whoever was first.
            Ok(unsafe { &*other })
        }
    }
}

/// Whether this is the table of this process: not in a child that forked on the watching thread.
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
    // SAFETY: not null, so a page as in `existing`.
    Ok(unsafe { &*PAGE.load(Ordering::Acquire) })
}

/// The child of a fork will close this set.
pub(crate) fn set_is(set: Set) {
    GUARD.store(set.guard, Ordering::Release);
    COOKIE.store(set.cookie, Ordering::Release);
    SET.store(set.epoll, Ordering::Release);
}

/// The child of a fork will close nothing.
pub(crate) fn there_is_no_set() {
    SET.store(-1, Ordering::Release);
}

/// May be registered, and so called, more than once.
extern "C" fn in_child() {
    let epoll = SET.swap(-1, Ordering::AcqRel);
    if epoll >= 0 {
        let (guard, cookie) = (GUARD.load(Ordering::Acquire), COOKIE.load(Ordering::Acquire));
        Set { epoll, guard, cookie }.close();
    }
}
