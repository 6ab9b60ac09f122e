//! Calls libsert, if the process has it. Its functions are looked up at run time, so libsert is
//! optional.
//!
//! A request that calls this library must not be stopped within the call while it holds a lock of
//! this library. Memory that this library allocates must not be freed together with the request's
//! memory. Therefore every call is unaccounted (`native/sert/include/sert.h`), which also masks
//! stops.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A function of libsert and its name. The pointer is null until the function is found.
struct Found(AtomicPtr<c_void>, &'static CStr);

impl Found {
    const fn new(name: &'static CStr) -> Self {
        Self(AtomicPtr::new(ptr::null_mut()), name)
    }

    fn look(&self) {
        // SAFETY: the name ends with a null byte. Every thread that looks the function up finds the
        // same one.
        self.0
            .store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.1.as_ptr()) }, Ordering::Release);
    }

    fn get(&self) -> Option<*mut c_void> {
        Some(self.0.load(Ordering::Acquire)).filter(|function| !function.is_null())
    }
}

static UNACCOUNTED_BEGIN: Found = Found::new(c"SERT_unaccounted_begin");
static UNACCOUNTED_END: Found = Found::new(c"SERT_unaccounted_end");
static TOKEN: Found = Found::new(c"SERT_token");
static TERMINATE: Found = Found::new(c"SERT_terminate");
static LOOKED: AtomicBool = AtomicBool::new(false);

type Terminate = extern "C" fn(u64, c_int) -> c_int;

/// Begins an unaccounted section. If `looks` is true, looks up libsert, but only once per process.
/// Once is enough, because libsert is linked or preloaded.
pub(crate) fn enter(looks: bool) {
    if looks && !LOOKED.load(Ordering::Acquire) {
        // Look `END` up first, so that a thread that has found `BEGIN` also finds `END`.
        for function in [&UNACCOUNTED_END, &TOKEN, &TERMINATE, &UNACCOUNTED_BEGIN] {
            function.look();
        }
        LOOKED.store(true, Ordering::Release);
    }
    nullary(&UNACCOUNTED_BEGIN);
}

/// Ends the unaccounted section. The function may not return, because the request may be stopped
/// here.
pub(crate) fn leave() {
    nullary(&UNACCOUNTED_END);
}

fn nullary(function: &Found) {
    if let Some(function) = function.get() {
        // SAFETY: `sert.h` declares both as `void (void)`, callable by any thread.
        let function = unsafe { transmute::<*mut c_void, extern "C" fn()>(function) };
        function();
    }
}

/// Returns the function of libsert that stops this thread's request, and the token to pass to it.
/// Returns `ENOTSUP` if the process has no libsert, and `EINVAL` if the thread has no request.
pub(crate) fn request() -> Result<(Terminate, u64), c_int> {
    let (token, terminate) = TOKEN.get().zip(TERMINATE.get()).ok_or(libc::ENOTSUP)?;
    // SAFETY: `sert.h` declares the function as `uint64_t (void)`.
    let token = unsafe { transmute::<*mut c_void, extern "C" fn() -> u64>(token) };
    // SAFETY: `sert.h` declares the function as `int (uint64_t, int)`, callable by any thread.
    let terminate = unsafe { transmute::<*mut c_void, Terminate>(terminate) };
    match token() {
        0 => Err(libc::EINVAL),
        token => Ok((terminate, token)),
    }
}
