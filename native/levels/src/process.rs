//! The process of a pool: whether it is the one that made the pool, and which signals its threads
//! take.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::result::CallError;

/// How many forks lie between the process that loaded the library and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: Once = Once::new();

/// The process in which an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(u32);

impl Home {
    /// Returns the present process.
    pub(crate) fn here() -> Self {
        WATCHED.call_once(|| {
            // SAFETY: the function stays loaded (`build.rs`), and does no more than an atomic
            // addition. If there is no memory for it, a child is not detected, as with most
            // libraries.
            _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Returns an error in another process than this one. A child has a copy of the parent's
    /// memory, with locks in any state, and no thread.
    pub(crate) fn check(self) -> Result<(), CallError> {
        if self == Self(FORKS.load(Ordering::Relaxed)) {
            Ok(())
        } else {
            Err(CallError::new(libc::ESRCH, "it belongs to the parent process"))
        }
    }
}

unsafe extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The signals that pool threads do not block: a fault belongs to the thread that causes it, and a
/// profile covers all threads.
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

/// Blocks signals on a pool's thread, so that the program's own threads take them.
pub(crate) fn leave_signals() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the set before others read it; the mask is this thread's
    // own.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for signal in TAKEN {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
    }
}
