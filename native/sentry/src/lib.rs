//! `libbywash-sentry`: detects for C programs that a peer has disconnected. The contract is in
//! `include/bywash/sentry.h`. This crate translates it to calls of [`bywash_sentry`].
//!
//! Each call blocks signals while it runs, so that no signal handler runs while a lock of this
//! library is held. So a handler may call `socket_unwatch`, and may jump out of the call that it
//! has interrupted. No panic leaves a function: a panic becomes the error `ENOTRECOVERABLE`.
#![allow(unsafe_code, reason = "functions for C, and a struct of its caller")]

mod sert;

use std::ffi::c_int;
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bywash_sentry::{Interest, Notice, Signal, Unsignalled};

const SW_DATA: u32 = 1;
const SW_HALF_CLOSE_OK: u32 = 2;
const SW_SERT: u32 = 4;
const SW_EVENTFD: u32 = 8;
const ALL_FLAGS: u32 = SW_DATA | SW_HALF_CLOSE_OK | SW_SERT | SW_EVENTFD;

/// The options of a watch: `struct socket_watch_opts` of `sentry.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    size: u32,
    flags: u32,
    signum: c_int,
    tid: libc::pid_t,
    cookie: u64,
    eventfd: c_int,
    cb: Option<extern "C" fn(u64, c_int)>,
}

/// Watches a socket, and sends a signal to this thread when the peer leaves; see `sentry.h`.
#[unsafe(no_mangle)]
pub extern "C" fn socket_watch(sockfd: c_int, signum: c_int) -> c_int {
    call(true, || {
        let signal = Signal { number: signum, thread: this_tid(), value: None };
        watch(sockfd, Interest::default(), Notice { signal: Some(signal), ..Notice::default() })
    })
}

/// Watches a socket with options; see `sentry.h`.
///
/// # Safety
/// `options` is null, or points to a `struct socket_watch_opts` as large as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket_watch_ex(sockfd: c_int, options: *const Options) -> c_int {
    call(true, || {
        if options.is_null() || !options.is_aligned() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller promises that it points to a struct of at least its `size`, and every
        // version of the struct begins with `size`.
        let size = unsafe { (*options).size };
        if size as usize != mem::size_of::<Options>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the struct is as large as `Options`. Any bytes are a valid value of its fields:
        // integers, and a function or null.
        let options = unsafe { *options };
        let interest = Interest {
            data: options.flags & SW_DATA != 0,
            half_close_ok: options.flags & SW_HALF_CLOSE_OK != 0,
        };
        watch(sockfd, interest, options.notice()?)
    })
}

/// Ends the watch of a socket; see `sentry.h`.
#[unsafe(no_mangle)]
pub extern "C" fn socket_unwatch(sockfd: c_int) -> c_int {
    call(false, || match bywash_sentry::unwatch(sockfd) {
        true => Ok(()),
        false if sockfd < 0 => Err(libc::EBADF),
        false => Err(libc::ENOENT),
    })
}

fn watch(sockfd: c_int, interest: Interest, notice: Notice) -> Result<(), c_int> {
    bywash_sentry::watch_with_notice(sockfd, interest, notice).map_err(|refused| refused.errno())
}

impl Options {
    fn notice(&self) -> Result<Notice, c_int> {
        if self.flags & !ALL_FLAGS != 0 || self.tid < 0 || (self.tid != 0 && self.signum == 0) {
            return Err(libc::EINVAL);
        }
        let signal = (self.signum != 0).then(|| Signal {
            number: self.signum,
            thread: if self.tid == 0 { this_tid() } else { self.tid },
            value: (self.cookie != 0).then_some(self.cookie),
        });
        let terminate = if self.flags & SW_SERT == 0 { None } else { Some(sert::request()?) };
        Ok(Notice {
            signal,
            eventfd: (self.flags & SW_EVENTFD != 0).then_some(self.eventfd),
            terminate,
            call: self.cb.map(|function| (function, self.cookie)),
        })
    }
}

/// Runs the body of a C function that returns 0, or -1 with `errno` set. `looks_for_sert` says
/// whether to look for libsert first.
///
/// `sert::leave` and the end of `Unsignalled` may not return: the request may be stopped, or a
/// handler may jump. At that point, nothing is left to drop.
fn call(looks_for_sert: bool, body: impl FnOnce() -> Result<(), c_int>) -> c_int {
    let unsignalled = ManuallyDrop::new(Unsignalled::now());
    sert::enter(looks_for_sert);
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        mem::forget(panic);
        Err(libc::ENOTRECOVERABLE)
    });
    if let Err(error) = result {
        // SAFETY: `errno` is this thread's own.
        unsafe { *libc::__errno_location() = error };
    }
    sert::leave();
    drop(ManuallyDrop::into_inner(unsignalled));
    if result.is_ok() { 0 } else { -1 }
}

fn this_tid() -> libc::pid_t {
    // SAFETY: no memory is passed.
    unsafe { libc::gettid() }
}
