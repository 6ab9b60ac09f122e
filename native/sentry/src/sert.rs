//! libsert, if the process has it: found at run time, so that nobody needs it.
//!
//! A request that calls us must not be stopped within, with our lock in hand; and what we allocate
//! then is not the request's, to be given back with it. So every call is unaccounted
//! (`native/sert/include/sert.h`), which masks too.

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
        // SAFETY: the name ends with a null byte. Whoever finds it finds the same.
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

/// libsert is linked or preloaded, so it is there from the beginning: one look is enough.
pub(crate) fn enter(looks: bool) {
    if looks && !LOOKED.load(Ordering::Acquire) {
        // `END` first: whoever has found `BEGIN` finds it.
        for function in [&UNACCOUNTED_END, &TOKEN, &TERMINATE, &UNACCOUNTED_BEGIN] {
            function.look();
        }
        LOOKED.store(true, Ordering::Release);
    }
    nullary(&UNACCOUNTED_BEGIN);
}

/// May not come back: the request may be stopped here.
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

/// How to stop the request of this thread. `ENOTSUP`: there is no libsert. `EINVAL`: no request.
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
