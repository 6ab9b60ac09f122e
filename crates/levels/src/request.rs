//! A request that has begun, from its first slot to its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::ThreadId;

use bywash_engine::levels::{LevelId, Ticket};
use bywash_units::Time;
use parking_lot::Mutex;

use crate::parker::Parker;
use crate::scheduler::PoolScheduler;
use crate::scope::Scope;
use crate::task::{Taken, TaskQueue};

/// The number of times that a request's own thread checks its task queue before it sleeps. After
/// that many checks, a worker that has finished the last task has usually left.
const MAX_POLLS: u32 = 64;

/// A request that has begun. The thread that owns the value runs on a slot of the pool, and
/// dropping the value gives the slot back and ends the request.
pub struct Request {
    scheduler: Arc<PoolScheduler>,
    ticket: Ticket,
    level: LevelId,
    /// The thread that has the request: the thread with which it began, or the last thread that
    /// opened a scope.
    thread: ThreadId,
    /// The time since which the request's own thread has held its present slot.
    since: Time,
    /// The number of worker threads that ask for work when the request has ended: 1 if a worker
    /// runs the request, otherwise 0.
    coming: usize,
    panicked: bool,
}

impl Request {
    pub(crate) fn new(scheduler: Arc<PoolScheduler>, ticket: Ticket, level: LevelId) -> Self {
        let since = scheduler.now();
        let thread = std::thread::current().id();
        Self { scheduler, ticket, level, thread, since, coming: 0, panicked: false }
    }

    /// Runs a job as a request, on a worker of the pool. After the call, the worker asks for its
    /// next work.
    pub(crate) fn run(
        scheduler: &Arc<PoolScheduler>,
        ticket: Ticket,
        level: LevelId,
        job: impl FnOnce(&mut Self),
    ) {
        let mut request = Self::new(Arc::clone(scheduler), ticket, level);
        // If the job panics, only this request fails.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(&mut request))) {
            request.panicked = true;
            // The payload of the panic is not dropped: its destructor may run arbitrary code, and
            // this worker serves other requests.
            std::mem::forget(panic);
        }
        request.coming = 1;
    }

    /// Returns the name of the request's level.
    pub fn level(&self) -> &str {
        &self.scheduler.names[self.level.0]
    }

    /// Returns the maximum number of threads of the request, which is that of its level.
    pub fn max_threads(&self) -> u32 {
        self.scheduler.level_settings[self.level.0].max_threads
    }

    /// Marks the request as failed, as if its code had panicked. A marked request counts as failed
    /// when it ends. Use this function in code that does not report failures by panics.
    pub fn fail(&mut self) {
        self.panicked = true;
    }

    /// Opens a scope, and runs its tasks in parallel. Returns when all tasks have ended.
    ///
    /// The tasks run on this thread and on further threads, as many as the level and the competing
    /// requests leave to this request. They may borrow from the enclosing frames.
    ///
    /// # Panics
    ///
    /// If the closure or a task panics. All other tasks end first.
    pub fn scope<'env, F, T>(&mut self, spawn: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        let here = std::thread::current().id();
        if self.thread != here {
            self.thread = here;
            self.scheduler.hand_to_this_thread(self.ticket);
        }
        let queue = Arc::new(TaskQueue::default());
        let others = self.max_threads() - 1;
        let scope =
            Scope::new(Arc::clone(&self.scheduler), self.ticket, Arc::clone(&queue), others);
        // The closure may leave state half done. No code observes that state, because the panic is
        // resumed below.
        let result = catch_unwind(AssertUnwindSafe(|| spawn(&scope)));
        // Tasks borrow from the frames above. So the process aborts rather than unwind past them
        // while tasks run.
        let guard = AbortIfUnwound;
        self.join(&queue);
        std::mem::forget(guard);
        match (result, queue.panic()) {
            (Ok(result), None) => result,
            (Ok(_), Some(panic)) => self.panics(panic),
            (Err(panic), other) => {
                // The task's panic payload is not dropped: its destructor may panic, which would
                // abort the process during unwinding.
                std::mem::forget(other);
                self.panics(panic)
            }
        }
    }

    fn panics(&mut self, panic: Box<dyn Any + Send>) -> ! {
        self.panicked = true;
        resume_unwind(panic)
    }

    /// Calls `each` with every index of `indices`, in parallel.
    ///
    /// # Panics
    ///
    /// If `each` panics.
    pub fn parallel_for(&mut self, indices: std::ops::Range<usize>, each: impl Fn(usize) + Sync) {
        /// The number of parts per thread. Slots change hands between parts, and a thread that
        /// joins late still finds parts to run.
        const PARTS: usize = 8;
        let (first, count) = (indices.start, indices.len());
        let parts = count.min(self.max_threads() as usize * PARTS);
        let bound = |part: usize| first + (count as u128 * part as u128 / parts as u128) as usize;
        let each = &each;
        let part = |part: usize| move || (bound(part)..bound(part + 1)).for_each(each);
        self.scope(|scope| scope.spawn_all((0..parts).map(part)));
    }

    /// Applies `of` to every item in parallel, with one task per item. Returns the results in the
    /// order of the items.
    ///
    /// # Panics
    ///
    /// If `of` panics.
    pub fn map<I: Sync, O: Send>(&mut self, items: &[I], of: impl Fn(&I) -> O + Sync) -> Vec<O> {
        let results: Vec<Mutex<Option<O>>> = items.iter().map(|_| Mutex::new(None)).collect();
        let make = |index: usize| *results[index].lock() = Some(of(&items[index]));
        let make = &make;
        let task = |index: usize| move || make(index);
        self.scope(|scope| scope.spawn_all((0..items.len()).map(task)));
        let result = |result: Mutex<Option<O>>| result.into_inner().expect("its task has ended");
        results.into_iter().map(result).collect()
    }

    /// Runs code that uses rayon (parallel iterators, `rayon::join`). The code gets as many threads
    /// as are free for this request when it begins, rounded down to a power of two. See the module
    /// `rayon`.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    ///
    /// # Panics
    ///
    /// If the code panics.
    #[cfg(feature = "rayon")]
    pub fn rayon<T: Send>(
        &mut self,
        code: impl FnOnce() -> T + Send,
    ) -> Result<T, rayon::ThreadPoolBuildError> {
        let lease = self.scheduler.lease(self.ticket, self.max_threads() - 1);
        let pool = self.scheduler.rayon.take(lease.threads())?;
        let result = catch_unwind(AssertUnwindSafe(|| pool.install(code)));
        self.scheduler.rayon.put(pool);
        drop(lease);
        Ok(result.unwrap_or_else(|panic| {
            self.panicked = true;
            resume_unwind(panic)
        }))
    }

    /// Runs the remaining tasks of a task queue, and waits until the tasks that workers run have
    /// ended.
    fn join(&mut self, queue: &Arc<TaskQueue>) {
        loop {
            while let Taken::Task(task, last) = queue.take() {
                if last {
                    self.scheduler.tasks_changed(self.ticket, queue);
                }
                queue.run(task);
                if self.scheduler.should_yield(self.since) {
                    self.pause(queue);
                }
            }
            if queue.is_done() {
                return;
            }
            if queue.is_ending() {
                self.scheduler.cancel_help(self.ticket, queue);
                if (0..MAX_POLLS).any(|_| {
                    std::hint::spin_loop();
                    queue.is_done()
                }) {
                    return;
                }
            }
            self.pause(queue);
        }
    }

    /// Gives the slot back, and waits until there is a task to run or all tasks have ended.
    fn pause(&mut self, queue: &Arc<TaskQueue>) {
        let parker = Arc::new(Parker::here());
        if queue.register_owner(&parker) {
            self.scheduler.pause(self.ticket, queue, self.since);
            parker.wait();
            self.since = self.scheduler.now();
        }
    }
}

struct AbortIfUnwound;

impl Drop for AbortIfUnwound {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let panicked = self.panicked || std::thread::panicking();
        self.scheduler.end(self.ticket, self.since, panicked, self.coming);
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("level", &self.level()).finish_non_exhaustive()
    }
}
