//! `libbywash-levels`: threads by service level, for C. The contract is in
//! `include/bywash/levels.h`. This crate translates it to calls of [`bywash_levels`].
//!
//! No panic leaves a function: a panic becomes the error `ENOTRECOVERABLE`. Mistakes of the C
//! program that can be detected are errors: null pointers, wrong sizes, a request used twice at a
//! time, a pool of the parent process. Other mistakes, such as using a request that has ended, are
//! the caller's responsibility. Each `unsafe` block here relies on the caller's promise.
#![allow(unsafe_code, reason = "functions for C, and structs of its caller")]

mod gateway;
mod options;
mod process;
mod result;
mod stats;
mod turn;

use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bywash_levels::{JobState, Pool, Refused, Request};

use options::{Options, sized, text};
use process::Home;
use result::{CallError, call, making};
use turn::{Arg, PoolNumber, Turn};

/// A pool as C sees it: `struct bywash_levels_pool` of `levels.h`.
pub(crate) struct PoolHandle {
    pool: Pool,
    number: PoolNumber,
    home: Home,
    /// The names of the pool's levels, in the order of their statistics.
    names: Vec<CString>,
}

impl fmt::Debug for PoolHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

/// Creates a pool; see `levels.h`.
///
/// # Safety
/// `options` is null, or points to a `struct bywash_levels_options` as large as its `size` says.
/// The pointers in it are null, or point to values of their types.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_new(options: *const Options) -> *mut PoolHandle {
    static POOLS: AtomicU64 = AtomicU64::new(0);
    making(|| {
        // SAFETY: the caller's promise.
        let options = unsafe { sized(options, "the struct of options")? };
        // SAFETY: the caller's promise for the pointers in `options`.
        let (pool, names) = unsafe { options.build()? };
        let names = names.into_iter().map(|name| CString::new(name).unwrap_or_default()).collect();
        let number = POOLS.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(PoolHandle { pool, number, home: Home::here(), names }))
    })
}

/// Returns the pool behind a pointer from C. Null and a pool of the parent process are errors.
///
/// # Safety
/// `pool` is null, or a pool that was not freed.
unsafe fn known<'p>(pool: *mut PoolHandle) -> Result<&'p PoolHandle, CallError> {
    // SAFETY: as the caller promises.
    let pool = unsafe { pool.as_ref() }.ok_or_else(|| CallError::null("the pool"))?;
    pool.home.check()?;
    Ok(pool)
}

/// Closes a pool, so that it refuses requests; see `levels.h`.
///
/// # Safety
/// `pool` is null, or a pool that was not freed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_close(pool: *mut PoolHandle) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { known(pool)? }.pool.close();
        Ok(())
    })
}

/// Closes a pool, waits for its requests and frees it; see `levels.h`.
///
/// # Safety
/// `pool` is null, or a pool that was not freed and that no other thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_free(pool: *mut PoolHandle) -> c_int {
    call(|| {
        if pool.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let known = unsafe { known(pool)? };
        known.pool.close();
        let caller = if turn::is_inside(known.number) {
            Some("a callback of the pool")
        } else if known.pool.has_request_here() {
            Some("a thread that has a request in the pool")
        } else {
            None
        };
        if let Some(caller) = caller {
            let words = format!(
                "{caller} has called this, and would wait for itself: the pool is closed, not freed"
            );
            return Err(CallError::new(libc::EDEADLK, words));
        }
        known.pool.wait_until_empty();
        // SAFETY: it was boxed by `making`, and the caller promises that it is used no more.
        drop(unsafe { Box::from_raw(pool) });
        Ok(())
    })
}

/// Waits for the turn of a request and returns the request; see `levels.h`.
///
/// # Safety
/// `pool` is null, or a pool that was not freed; `level` is null or a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_begin(
    pool: *mut PoolHandle,
    level: *const c_char,
    timeout_ns: i64,
) -> *mut Turn {
    making(|| {
        // SAFETY: the caller's promise.
        let pool = unsafe { known(pool)? };
        // SAFETY: the caller's promise for `level`.
        let level = unsafe { text(level, "the level")? };
        let request = match u64::try_from(timeout_ns) {
            Ok(patience) => pool.pool.request_within(level, Duration::from_nanos(patience))?,
            Err(_) if timeout_ns == -1 => pool.pool.request(level)?,
            Err(_) => {
                return Err(CallError::invalid(
                    "the timeout is below 0, and only -1 is allowed there",
                ));
            }
        };
        Ok(Box::new(Turn::new(request, pool.number)))
    })
}

type Run = unsafe extern "C-unwind" fn(*mut Turn, *mut c_void);

/// Submits a function that a thread of the pool runs as a request; see `levels.h`.
///
/// # Safety
/// `pool` is null, or a pool that was not freed; `level` is null or a text; `run` may be called by
/// any thread with `arg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_submit(
    pool: *mut PoolHandle,
    level: *const c_char,
    run: Option<Run>,
    arg: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let pool = unsafe { known(pool)? };
        // SAFETY: the caller's promise for `level`.
        let level = unsafe { text(level, "the level")? };
        let run = run.ok_or_else(|| CallError::null("the function"))?;
        let state = JobState::default();
        let job = Job { run, arg: Arg(arg), pool: pool.number, state: state.clone() };
        pool.pool.submit(level, move |request| job.run(request))?;
        if state.accept() { Ok(()) } else { Err(Refused::Closed.into()) }
    })
}

/// A submitted request with its function `run`. If the caller has learned that the pool accepted
/// the request, `run` is called exactly once.
struct Job {
    run: Run,
    arg: Arg,
    pool: PoolNumber,
    state: JobState,
}

impl Job {
    fn run(self, request: &mut Request) {
        self.state.begin();
        Turn::lent(request, self.pool, |turn| self.call(turn));
    }

    fn call(&self, turn: *mut Turn) {
        let Arg(arg) = self.arg;
        // SAFETY: as the caller of `bywash_levels_submit` promises.
        turn::inside(self.pool, || unsafe { (self.run)(turn, arg) });
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.state.end() {
            self.call(ptr::null_mut());
        }
    }
}
