//! The result of a call from C: the return value, `errno`, and the text of an error.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bywash_levels::{BuildError, Refused};

/// The reason why a call failed: a number of `errno`, and a text.
#[derive(Debug)]
pub(crate) struct CallError {
    errno: c_int,
    words: String,
}

thread_local! {
    static WORDS: RefCell<CString> = RefCell::default();
}

impl CallError {
    pub(crate) fn new(errno: c_int, words: impl Into<String>) -> Self {
        Self { errno, words: words.into() }
    }

    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, words)
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::invalid(format!("{what} is NULL"))
    }

    /// Sets `errno`, and the text that `bywash_levels_error` returns on this thread.
    fn tell(self) {
        let words = CString::new(self.words).unwrap_or_default();
        // Ignore a failure: a thread that is ending has no storage for the text any more.
        _ = WORDS.try_with(|place| place.replace(words));
        // SAFETY: `errno` is this thread's own.
        unsafe { *libc::__errno_location() = self.errno };
    }
}

impl From<Refused> for CallError {
    fn from(refused: Refused) -> Self {
        let errno = match refused {
            Refused::Unknown { .. } => libc::ENOENT,
            Refused::Full(_) => libc::EAGAIN,
            Refused::TimedOut(_) => libc::ETIMEDOUT,
            Refused::Closed => libc::ESHUTDOWN,
        };
        Self::new(errno, refused.to_string())
    }
}

impl From<BuildError> for CallError {
    fn from(error: BuildError) -> Self {
        let errno = match &error {
            BuildError::Thread(error) => error.raw_os_error().unwrap_or(libc::EAGAIN),
            BuildError::Level { .. }
            | BuildError::Settings(_)
            | BuildError::Twice(_)
            | BuildError::Unknown { .. }
            | BuildError::EmptyName
            | BuildError::Parity
            | BuildError::TooMany(..) => libc::EINVAL,
        };
        Self::new(errno, error.to_string())
    }
}

/// Returns the text of the last error on this thread; see `levels.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn bywash_levels_error() -> *const c_char {
    WORDS.try_with(|words| words.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Runs the body of a C function that returns 0, or -1 with `errno` set.
pub(crate) fn call(body: impl FnOnce() -> Result<(), CallError>) -> c_int {
    if attempt(body).is_some() { 0 } else { -1 }
}

/// Runs the body of a C function that returns a new object, or null with `errno` set.
pub(crate) fn making<T>(body: impl FnOnce() -> Result<Box<T>, CallError>) -> *mut T {
    attempt(body).map_or(std::ptr::null_mut(), Box::into_raw)
}

/// Runs `body` and returns its value. If `body` fails, sets `errno` and returns `None`. Catches
/// panics, which C cannot handle.
fn attempt<T>(body: impl FnOnce() -> Result<T, CallError>) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        // Dropping the payload may panic again.
        mem::forget(panic);
        Err(CallError::new(libc::ENOTRECOVERABLE, "an error in libbywash-levels"))
    });
    result.map_err(CallError::tell).ok()
}
