//! Detects that a pool is used in another process than the one that created it, and sets which
//! signals the threads of a pool receive.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::result::CallError;

/// The number of forks between the process that loaded the library and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// The registration of the handler that counts forks.
static WATCHED: Once = Once::new();

/// The process in which an object was created, identified by its number of forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(u32);

impl Home {
    /// Returns the present process. The first call registers a handler that counts forks.
    pub(crate) fn here() -> Self {
        WATCHED.call_once(|| {
            // SAFETY: the function stays loaded (`build.rs`), and does no more than an atomic
            // addition. If there is no memory for it, a child is not detected, as with most
            // libraries.
            _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Returns the error `ESRCH` if this is not the process in which the object was created. A
    /// child has a copy of the parent's memory, with locks in any state, but none of the parent's
    /// other threads.
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

/// The signals that pool threads do not block. A fault signal belongs to the thread that causes the
/// fault, and a profiler's signal must reach all threads.
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

/// Blocks all signals except [`TAKEN`] on the calling thread, which belongs to a pool. The
/// program's own threads receive the blocked signals instead.
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
