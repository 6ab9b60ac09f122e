//! libsert, if the process has it. It is looked up at run time, so that it is optional.
//!
//! A request that calls this library must not be stopped within the call, with our lock held. And
//! memory that we allocate in the call must not be freed as the request's. So every call is
//! unaccounted (`native/sert/include/sert.h`), which also masks stops.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A function of libsert: null until it was found.
struct Found(AtomicPtr<c_void>, &'static CStr);

impl Found {
    const fn new(name: &'static CStr) -> Self {
        Self(AtomicPtr::new(ptr::null_mut()), name)
    }

    fn look(&self) {
        // SAFETY: the name ends with a null byte. Every thread that looks it up finds the same
        // function.
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

/// Looks libsert up once: it is linked or preloaded, so it is there from the beginning.
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

/// Ends the unaccounted section. It may not return, since the request may be stopped here.
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

/// Returns the function and token that stop this thread's request. `ENOTSUP`: there is no libsert.
/// `EINVAL`: no request.
pub(crate) fn request() -> Result<(Terminate, u64), c_int> {
    let (token, terminate) = TOKEN.get().zip(TERMINATE.get()).ok_or(libc::ENOTSUP)?;
    // SAFETY: `sert.h` declares it as `uint64_t (void)`.
    let token = unsafe { transmute::<*mut c_void, extern "C" fn() -> u64>(token) };
    // SAFETY: `sert.h` declares it as `int (uint64_t, int)`, callable by any thread.
    let terminate = unsafe { transmute::<*mut c_void, Terminate>(terminate) };
    match token() {
        0 => Err(libc::EINVAL),
        token => Ok((terminate, token)),
    }
}
