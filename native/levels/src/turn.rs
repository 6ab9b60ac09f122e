//! `struct bywash_levels_request`, and its tasks.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use bywash_levels::{Request, Scope};

use crate::process::Home;
use crate::result::{Fault, call};

/// What is passed to a callback: the caller's, whichever thread it runs on.
#[derive(Clone, Copy)]
pub(crate) struct Arg(pub(crate) *mut c_void);

// SAFETY: this library never looks behind it. That callbacks run on other threads is in the contract.
unsafe impl Send for Arg {}
// SAFETY: the same.
unsafe impl Sync for Arg {}

// Functions of C++ may throw; the unwinding is stopped, and the process with it, by the first `catch_unwind` above.
type Each = unsafe extern "C-unwind" fn(usize, *mut c_void);
type Task = unsafe extern "C-unwind" fn(*mut TaskScope, *mut c_void);

/// The number of a pool, in this process.
pub(crate) type PoolNumber = u64;

thread_local! {
    /// The pools in whose callbacks this thread is.
    static INSIDE: RefCell<Vec<PoolNumber>> = const { RefCell::new(Vec::new()) };
}

/// Runs a callback of a pool.
pub(crate) fn inside(pool: PoolNumber, callback: impl FnOnce()) {
    struct Leaves;
    impl Drop for Leaves {
        fn drop(&mut self) {
            _ = INSIDE.try_with(|inside| inside.borrow_mut().pop());
        }
    }
    _ = INSIDE.try_with(|inside| inside.borrow_mut().push(pool));
    let _leaves = Leaves;
    callback();
}

/// Whether this thread is in a callback of that pool.
pub(crate) fn is_inside(pool: PoolNumber) -> bool {
    INSIDE.try_with(|inside| inside.borrow().contains(&pool)).unwrap_or(false)
}

/// Whose request it is.
enum Owner {
    /// The caller's, until she ends it.
    Caller(Request),
    /// A thread of the pool's, until its function returns.
    Pool(*mut Request),
}

/// `struct bywash_levels_request`.
pub(crate) struct Turn {
    pool: PoolNumber,
    home: Home,
    /// Whether somebody has `owner`.
    busy: AtomicBool,
    owner: UnsafeCell<Owner>,
}

// SAFETY: `owner` is touched by whoever has set `busy`, and a `Request` may be used by any thread.
unsafe impl Sync for Turn {}
// SAFETY: the same. What `Owner::Pool` points to outlives the turn: `Turn::lent`.
unsafe impl Send for Turn {}

impl Turn {
    /// One that waited for.
    pub(crate) fn new(request: Request, pool: PoolNumber) -> Self {
        let owner = UnsafeCell::new(Owner::Caller(request));
        Self { pool, home: Home::here(), busy: AtomicBool::new(false), owner }
    }

    /// One that a thread of the pool runs: lent to a function until it returns.
    pub(crate) fn lent(request: &mut Request, pool: PoolNumber, to: impl FnOnce(*mut Turn)) {
        let owner = UnsafeCell::new(Owner::Pool(request));
        let mut turn = Self { pool, home: Home::here(), busy: AtomicBool::new(false), owner };
        to(&raw mut turn);
    }

    /// Uses the request, unless somebody does.
    fn used<T>(&self, by: impl FnOnce(&mut Request) -> T) -> Result<T, Fault> {
        struct Free<'t>(&'t AtomicBool);
        impl Drop for Free<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        self.home.check()?;
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(Fault::new(libc::EBUSY, "tasks of the request run already"));
        }
        let _free = Free(&self.busy);
        // SAFETY: `busy` was not set, and is until this returns: nobody else has it.
        let owner = unsafe { &mut *self.owner.get() };
        Ok(by(match owner {
            Owner::Caller(request) => request,
            // SAFETY: `Turn::lent` has it exclusively, and outlives this by contract.
            Owner::Pool(request) => unsafe { &mut **request },
        }))
    }

    fn is_lent(&self) -> bool {
        // SAFETY: which of the two it is never changes.
        matches!(unsafe { &*self.owner.get() }, Owner::Pool(_))
    }
}

/// A request of C's.
///
/// # Safety
/// `turn` is null, or a request that has not ended.
unsafe fn known<'t>(turn: *mut Turn) -> Result<&'t Turn, Fault> {
    // SAFETY: as the caller promises.
    unsafe { turn.as_ref() }.ok_or_else(|| Fault::null("the request"))
}

/// See `levels.h`.
///
/// # Safety
/// `request` is null, or a request that has not ended.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_end(request: *mut Turn) -> c_int {
    call(|| {
        if request.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let turn = unsafe { known(request)? };
        // Nobody uses it now, and nobody will: it is the caller's.
        turn.used(|_| ())?;
        if turn.is_lent() {
            return Err(Fault::new(libc::EPERM, "a submitted request ends with its function"));
        }
        // SAFETY: it is not lent, so it was boxed by `making`; it is used no more, the caller promises.
        drop(unsafe { Box::from_raw(request) });
        Ok(())
    })
}

/// See `levels.h`.
///
/// # Safety
/// As of [`bywash_levels_end`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_fail(request: *mut Turn) -> c_int {
    // SAFETY: the caller's promise.
    call(|| unsafe { known(request)? }.used(Request::fail))
}

/// See `levels.h`.
///
/// # Safety
/// As of [`bywash_levels_end`]; `each` may be called by any thread with `arg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_parallel_for(
    request: *mut Turn,
    n: usize,
    each: Option<Each>,
    arg: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let turn = unsafe { known(request)? };
        let (each, arg) = (each.ok_or_else(|| Fault::null("the function"))?, Arg(arg));
        // SAFETY: the caller's promise.
        let one = |index| inside(turn.pool, || unsafe { call_each(each, index, arg) });
        turn.used(|request| request.parallel_for(0..n, one))
    })
}

/// Takes `arg` whole: a closure would take its pointer alone, which no other thread may have.
unsafe fn call_each(each: Each, index: usize, Arg(arg): Arg) {
    // SAFETY: as the caller of the library promises.
    unsafe { each(index, arg) }
}

/// `struct bywash_levels_tasks`.
pub(crate) struct TaskScope {
    pool: PoolNumber,
    scope: AtomicPtr<c_void>,
}

impl TaskScope {
    fn call(&self, task: Task, Arg(arg): Arg) {
        // SAFETY: the caller of the library promises that it may be called. What it gets is for other
        // functions of ours, which read it only.
        inside(self.pool, || unsafe { task(ptr::from_ref(self).cast_mut(), arg) });
    }
}

/// See `levels.h`.
///
/// # Safety
/// As of [`bywash_levels_end`]; `fill` may be called with `arg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_scope(
    request: *mut Turn,
    fill: Option<Task>,
    arg: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let turn = unsafe { known(request)? };
        let fill = fill.ok_or_else(|| Fault::null("the function"))?;
        // Outlives the tasks, which have it.
        let place = TaskScope { pool: turn.pool, scope: AtomicPtr::new(ptr::null_mut()) };
        turn.used(|request| {
            request.scope(|scope| {
                place.scope.store(ptr::from_ref(scope).cast_mut().cast(), Ordering::Release);
                place.call(fill, Arg(arg));
            });
        })
    })
}

/// See `levels.h`.
///
/// # Safety
/// `scope` is null, or the scope of the callback that calls; `task` may be called by any thread with
/// `arg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_spawn(
    scope: *mut TaskScope,
    task: Option<Task>,
    arg: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: `bywash_levels_scope` returns when all callbacks have, so it is there for a longer
        // time than the task, which is all that `'static` stands for here.
        let place: &'static TaskScope =
            unsafe { scope.as_ref() }.ok_or_else(|| Fault::null("the scope"))?;
        let (task, arg) = (task.ok_or_else(|| Fault::null("the function"))?, Arg(arg));
        let scope = place.scope.load(Ordering::Acquire).cast::<Scope<'static, 'static>>();
        // SAFETY: the same: it was stored before the first callback.
        unsafe { &*scope }.spawn(move || place.call(task, arg));
        Ok(())
    })
}
