//! What a pool's threads are to the process: which it is, and whose signals.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::result::Fault;

/// How often this process is a fork's child, counted from the one that loaded the library.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: Once = Once::new();

/// The process in which something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(u32);

impl Home {
    /// This one.
    pub(crate) fn here() -> Self {
        WATCHED.call_once(|| {
            // SAFETY: the function stays loaded (`build.rs`), and does no more than an atomic addition.
            // No memory for it: then a child is not told, as with most libraries.
            _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is still it. A child has memory of the parent's, with locks as they happened to be, and no thread.
    pub(crate) fn check(self) -> Result<(), Fault> {
        if self == Self(FORKS.load(Ordering::Relaxed)) {
            Ok(())
        } else {
            Err(Fault::new(libc::ESRCH, "it belongs to the parent process"))
        }
    }
}

unsafe extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Faults are the thread's that makes them, and a profile is of all threads.
const TAKEN: [c_int; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    libc::SIGPROF,
];

/// The program's own threads take its signals, as if there were no pool.
pub(crate) fn leave_signals() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigfillset` makes a set of it, before others read it; the mask is this thread's own.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for signal in TAKEN {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
    }
}
