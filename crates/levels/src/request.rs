//! A turn in the pool: from a request's first slot to its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use bywash_engine::levels::{LevelId, Ticket};
use bywash_units::Time;
use parking_lot::Mutex;

use crate::desk::Desk;
use crate::scope::Scope;
use crate::seat::Seat;
use crate::task::{Bag, Taken};

/// Looks at the bag before its owner goes to sleep: a worker that has ended the last task is gone by then.
const LOOKS: u32 = 64;

/// A request whose turn has come. The thread that has it runs on a slot of the pool; dropped, it gives it back.
pub struct Request {
    desk: Arc<Desk>,
    ticket: Ticket,
    level: LevelId,
    /// Since when it has its slot.
    since: Time,
    /// Threads of the pool that look for more to do as soon as it is over.
    coming: usize,
    pub(crate) panicked: bool,
}

impl Request {
    pub(crate) fn new(desk: Arc<Desk>, ticket: Ticket, level: LevelId) -> Self {
        let since = desk.now();
        Self { desk, ticket, level, since, coming: 0, panicked: false }
    }

    /// Over, and a thread of the pool that has run it looks for more to do.
    pub(crate) fn end_of_worker(mut self) {
        self.coming = 1;
    }

    /// The name of its level.
    pub fn level(&self) -> &str {
        &self.desk.names[self.level.0]
    }

    /// Threads that it may have at most.
    pub fn max_threads(&self) -> u32 {
        self.desk.terms[self.level.0].max_threads
    }

    /// Counts it as failed when it ends, as one that panicked is: for code that says so in another way.
    pub fn fail(&mut self) {
        self.panicked = true;
    }

    /// Runs tasks side by side on as many threads as the level and the others leave to it, this one among them, and
    /// returns when all have ended. Tasks may borrow from the surroundings.
    ///
    /// # Panics
    ///
    /// If the closure or a task does; all other tasks have ended then.
    pub fn scope<'env, F, T>(&mut self, spawn: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        let bag = Arc::new(Bag::default());
        let others = self.max_threads() - 1;
        let scope = Scope::new(Arc::clone(&self.desk), self.ticket, Arc::clone(&bag), others);
        // What the closure leaves half done when it panics nobody sees: the panic goes on below.
        let result = catch_unwind(AssertUnwindSafe(|| spawn(&scope)));
        // Tasks borrow from frames above: unwinding past them while they run must not be.
        let guard = AbortIfUnwound;
        self.join(&bag);
        std::mem::forget(guard);
        match (result, bag.panic()) {
            (Ok(result), None) => result,
            (Ok(_), Some(panic)) => self.panics(panic),
            (Err(panic), other) => {
                // To drop what a task threw may panic as well, which while unwinding ends the process.
                std::mem::forget(other);
                self.panics(panic)
            }
        }
    }

    fn panics(&mut self, panic: Box<dyn Any + Send>) -> ! {
        self.panicked = true;
        resume_unwind(panic)
    }

    /// Calls `each` with every index, side by side.
    ///
    /// # Panics
    ///
    /// As [`Request::scope`].
    pub fn parallel_for(&mut self, indices: std::ops::Range<usize>, each: impl Fn(usize) + Sync) {
        /// Parts for each thread: slots change hands between them, and threads that are late find some left.
        const PARTS: usize = 8;
        let (first, count) = (indices.start, indices.len());
        let parts = count.min(self.max_threads() as usize * PARTS);
        let bound = |part: usize| first + (count as u128 * part as u128 / parts as u128) as usize;
        let each = &each;
        let part = |part: usize| move || (bound(part)..bound(part + 1)).for_each(each);
        self.scope(|scope| scope.spawn_all((0..parts).map(part)));
    }

    /// What `of` makes of every item, side by side, one task each.
    ///
    /// # Panics
    ///
    /// As [`Request::scope`].
    pub fn map<I: Sync, O: Send>(&mut self, items: &[I], of: impl Fn(&I) -> O + Sync) -> Vec<O> {
        let results: Vec<Mutex<Option<O>>> = items.iter().map(|_| Mutex::new(None)).collect();
        let make = |index: usize| *results[index].lock() = Some(of(&items[index]));
        let make = &make;
        let task = |index: usize| move || make(index);
        self.scope(|scope| scope.spawn_all((0..items.len()).map(task)));
        let result = |result: Mutex<Option<O>>| result.into_inner().expect("its task has ended");
        results.into_iter().map(result).collect()
    }

    /// Runs code that uses rayon (parallel iterators, `rayon::join`) on as many threads as are free for this request
    /// when it begins, rounded down to a power of two. See the module `rayon`.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    ///
    /// # Panics
    ///
    /// If the code does.
    #[cfg(feature = "rayon")]
    pub fn rayon<T: Send>(
        &mut self,
        code: impl FnOnce() -> T + Send,
    ) -> Result<T, rayon::ThreadPoolBuildError> {
        let lease = self.desk.lease(self.ticket, self.max_threads() - 1);
        let pool = self.desk.rayon.take(lease.threads())?;
        let result = catch_unwind(AssertUnwindSafe(|| pool.install(code)));
        self.desk.rayon.put(pool);
        drop(lease);
        Ok(result.unwrap_or_else(|panic| {
            self.panicked = true;
            resume_unwind(panic)
        }))
    }

    /// Runs what is left in a bag, and waits for what others run.
    fn join(&mut self, bag: &Arc<Bag>) {
        loop {
            while let Taken::Task(task, last) = bag.take() {
                if last {
                    self.desk.tasks_changed(self.ticket, bag);
                }
                bag.run(task);
                if self.desk.should_yield(self.since) {
                    self.pause(bag);
                }
            }
            if bag.is_done() {
                return;
            }
            if bag.is_ending() {
                self.desk.call_off(self.ticket, bag);
                if (0..LOOKS).any(|_| {
                    std::hint::spin_loop();
                    bag.is_done()
                }) {
                    return;
                }
            }
            self.pause(bag);
        }
    }

    /// Gives the slot back until there is something to do, or all is done.
    fn pause(&mut self, bag: &Arc<Bag>) {
        let seat = Arc::new(Seat::here());
        if bag.sit(&seat) {
            self.desk.pause(self.ticket, bag, self.since);
            seat.wait();
            self.since = self.desk.now();
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
        self.desk.end(self.ticket, self.since, panicked, self.coming);
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("level", &self.level()).finish_non_exhaustive()
    }
}
