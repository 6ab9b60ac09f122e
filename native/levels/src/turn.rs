//! `struct bywash_levels_request` of `levels.h`, and the tasks of a request.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use bywash_levels::{Request, Scope};

use crate::process::Home;
use crate::result::{CallError, call};

/// The argument with which a callback is called. The C program owns what it points to, and allows
/// its use on any thread.
#[derive(Clone, Copy)]
pub(crate) struct Arg(pub(crate) *mut c_void);

// SAFETY: this library never dereferences the pointer. By the contract, callbacks with it run on
// other threads.
unsafe impl Send for Arg {}
// SAFETY: as for `Send`.
unsafe impl Sync for Arg {}

// C++ functions may throw. The first `catch_unwind` above the callback stops the unwinding, and
// aborts the process.
type Each = unsafe extern "C-unwind" fn(usize, *mut c_void);
type Task = unsafe extern "C-unwind" fn(*mut TaskScope, *mut c_void);

/// The number that identifies a pool in this process.
pub(crate) type PoolNumber = u64;

thread_local! {
    /// The pools whose callbacks this thread is executing, the innermost last.
    static INSIDE: RefCell<Vec<PoolNumber>> = const { RefCell::new(Vec::new()) };
}

/// Runs a callback of the pool `pool`, and records meanwhile that this thread is in the callback.
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

/// Returns whether this thread is in a callback of the pool `pool`.
pub(crate) fn is_inside(pool: PoolNumber) -> bool {
    INSIDE.try_with(|inside| inside.borrow().contains(&pool)).unwrap_or(false)
}

/// The owner of a request, which decides when the request ends.
enum Owner {
    /// The calling thread owns the request until it calls `bywash_levels_end`.
    Caller(Request),
    /// A thread of the pool owns the request until the submitted function returns.
    Pool(*mut Request),
}

/// A request as C sees it: `struct bywash_levels_request` of `levels.h`.
pub(crate) struct Turn {
    pool: PoolNumber,
    home: Home,
    /// Whether a thread uses `owner` at present.
    busy: AtomicBool,
    owner: UnsafeCell<Owner>,
}

// SAFETY: only the thread that has set `busy` uses `owner`, and any thread may use a `Request`.
unsafe impl Sync for Turn {}
// SAFETY: as for `Sync`. The target of `Owner::Pool` outlives the turn; see `Turn::lent`.
unsafe impl Send for Turn {}

impl Turn {
    /// Creates the C object of a request for whose turn the calling thread has waited.
    pub(crate) fn new(request: Request, pool: PoolNumber) -> Self {
        let owner = UnsafeCell::new(Owner::Caller(request));
        Self { pool, home: Home::here(), busy: AtomicBool::new(false), owner }
    }

    /// Lends a request, which a thread of the pool runs, to the function `to` until `to` returns.
    pub(crate) fn lent(request: &mut Request, pool: PoolNumber, to: impl FnOnce(*mut Turn)) {
        let owner = UnsafeCell::new(Owner::Pool(request));
        let mut turn = Self { pool, home: Home::here(), busy: AtomicBool::new(false), owner };
        to(&raw mut turn);
    }

    /// Calls `by` with the request, and returns its result. Returns an error if another thread uses
    /// the request.
    fn used<T>(&self, by: impl FnOnce(&mut Request) -> T) -> Result<T, CallError> {
        struct Free<'t>(&'t AtomicBool);
        impl Drop for Free<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        self.home.check()?;
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(CallError::new(libc::EBUSY, "tasks of the request run already"));
        }
        let _free = Free(&self.busy);
        // SAFETY: this call has set `busy`, which stays set until it returns. So no other thread
        // uses `owner`.
        let owner = unsafe { &mut *self.owner.get() };
        Ok(by(match owner {
            Owner::Caller(request) => request,
            // SAFETY: `Turn::lent` has the request exclusively, and outlives this call by contract.
            Owner::Pool(request) => unsafe { &mut **request },
        }))
    }

    fn is_lent(&self) -> bool {
        // SAFETY: the variant never changes.
        matches!(unsafe { &*self.owner.get() }, Owner::Pool(_))
    }
}

/// Returns the request behind a pointer from C. Null is an error.
///
/// # Safety
/// `turn` is null, or a request that has not ended.
unsafe fn known<'t>(turn: *mut Turn) -> Result<&'t Turn, CallError> {
    // SAFETY: as the caller promises.
    unsafe { turn.as_ref() }.ok_or_else(|| CallError::null("the request"))
}

/// Ends a request that the caller owns, and frees it; see `levels.h`.
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
        // This fails if another thread uses the request. By the caller's promise, none begins to.
        turn.used(|_| ())?;
        if turn.is_lent() {
            return Err(CallError::new(libc::EPERM, "a submitted request ends with its function"));
        }
        // SAFETY: it is not lent, so it was boxed by `making`, and the caller promises that it is
        // used no more.
        drop(unsafe { Box::from_raw(request) });
        Ok(())
    })
}

/// Marks a request as failed; see `levels.h`.
///
/// # Safety
/// As for [`bywash_levels_end`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_fail(request: *mut Turn) -> c_int {
    // SAFETY: the caller's promise.
    call(|| unsafe { known(request)? }.used(Request::fail))
}

/// Calls a function for each index below `n` in parallel; see `levels.h`.
///
/// # Safety
/// As for [`bywash_levels_end`]; `each` may be called by any thread with `arg`.
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
        let (each, arg) = (each.ok_or_else(|| CallError::null("the function"))?, Arg(arg));
        // SAFETY: the caller's promise.
        let one = |index| inside(turn.pool, || unsafe { call_each(each, index, arg) });
        turn.used(|request| request.parallel_for(0..n, one))
    })
}

/// Calls `each` with `index` and the argument. Takes `arg` as a whole, because a closure would
/// capture only its pointer, which is not `Send`.
unsafe fn call_each(each: Each, index: usize, Arg(arg): Arg) {
    // SAFETY: the caller of the library promises so.
    unsafe { each(index, arg) }
}

/// A scope in which tasks are started: `struct bywash_levels_tasks` of `levels.h`.
pub(crate) struct TaskScope {
    pool: PoolNumber,
    scope: AtomicPtr<c_void>,
}

impl TaskScope {
    fn call(&self, task: Task, Arg(arg): Arg) {
        // SAFETY: the caller of the library promises that `task` may be called. The callback passes
        // the pointer only to other functions of this library, which only read what it points to.
        inside(self.pool, || unsafe { task(ptr::from_ref(self).cast_mut(), arg) });
    }
}

/// Runs a function that starts tasks, and waits for all of them; see `levels.h`.
///
/// # Safety
/// As for [`bywash_levels_end`]; `fill` may be called with `arg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_scope(
    request: *mut Turn,
    fill: Option<Task>,
    arg: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let turn = unsafe { known(request)? };
        let fill = fill.ok_or_else(|| CallError::null("the function"))?;
        // `place` outlives the tasks, which point to it.
        let place = TaskScope { pool: turn.pool, scope: AtomicPtr::new(ptr::null_mut()) };
        turn.used(|request| {
            request.scope(|scope| {
                place.scope.store(ptr::from_ref(scope).cast_mut().cast(), Ordering::Release);
                place.call(fill, Arg(arg));
            });
        })
    })
}

/// Starts a task in a scope; see `levels.h`.
///
/// # Safety
/// `scope` is null, or the scope of the calling callback; `task` may be called by any thread with
/// `arg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_spawn(
    scope: *mut TaskScope,
    task: Option<Task>,
    arg: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: `bywash_levels_scope` returns when all callbacks have, so the scope outlives the
        // task, which is all that `'static` stands for here.
        let place: &'static TaskScope =
            unsafe { scope.as_ref() }.ok_or_else(|| CallError::null("the scope"))?;
        let (task, arg) = (task.ok_or_else(|| CallError::null("the function"))?, Arg(arg));
        let scope = place.scope.load(Ordering::Acquire).cast::<Scope<'static, 'static>>();
        // SAFETY: the scope outlives the task, as above. The pointer was stored before the first
        // callback.
        unsafe { &*scope }.spawn(move || place.call(task, arg));
        Ok(())
    })
}
