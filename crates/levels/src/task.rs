//! The tasks of a scope. They do not outlive the data that they borrow.
//!
//! A task may borrow from the frame that opened its scope, and threads run it that know nothing of
//! that frame. So its lifetime is erased when it is put into the task queue, and the scope does not
//! return before every task has run to its end or was dropped. The unsafe lines of this crate rely
//! on that alone.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::parker::Parker;

type Task = Box<dyn FnOnce() + Send>;

/// The tasks of one scope.
///
/// Each thread that runs its tasks (the owner and the workers) holds the task queue by an `Arc`, so
/// the queue itself outlives the scope. When the scope has returned, the task queue is empty.
#[derive(Default)]
pub(crate) struct TaskQueue(Mutex<State>);

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// The number of tasks that were put in and have not ended.
    unfinished: usize,
    /// The number of workers that were called to this task queue and have not left.
    helpers: usize,
    /// The number of helpers that have not arrived yet.
    called: usize,
    /// The wait of the scope's own thread, while it waits for a slot or for the workers.
    owner: Option<Arc<Parker>>,
    /// The number of tasks for which the scheduler knows that they want another thread.
    known: usize,
    /// The payload of the first panic of a task.
    panic: Option<Box<dyn Any + Send>>,
}

impl State {
    fn wanting(&self) -> usize {
        self.tasks.len().saturating_sub(self.called)
    }

    /// Returns whether no task is left and no worker is here or on its way.
    fn is_done(&self) -> bool {
        self.unfinished == 0 && self.helpers == 0
    }
}

/// The thread that uses another slot of a request.
pub(crate) enum NextThread {
    /// The request's own thread, which waits.
    Owner(Arc<Parker>),
    /// A worker of the pool.
    Worker,
}

/// The result of taking a task.
pub(crate) enum Taken {
    /// A task. The flag is true if the task queue is now empty and the scheduler must be notified.
    Task(Running, bool),
    /// The task queue is empty.
    Empty,
}

/// A task that was taken out, to be run by [`TaskQueue::run`].
pub(crate) struct Running(Task);

impl TaskQueue {
    /// Puts a task in. Returns whether the scheduler must be notified. It need not be if it already
    /// knows of `most` tasks, because it cannot provide more threads than that.
    ///
    /// # Safety
    ///
    /// The caller must not return to where `'scope` may end before [`TaskQueue::is_done`].
    #[allow(unsafe_code, reason = "tasks borrow from the frame of their scope")]
    pub(crate) unsafe fn put<'scope>(
        &self,
        task: Box<dyn FnOnce() + Send + 'scope>,
        most: u32,
    ) -> bool {
        // SAFETY: only the lifetime is changed. A task ends within `run`, which takes it by value,
        // and `unfinished` counts it until then. By the caller's promise `'scope` lasts as long.
        let task = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + 'scope>, Task>(task) };
        let mut state = self.0.lock();
        state.tasks.push_back(task);
        state.unfinished += 1;
        // An owner that waits has not been notified of new tasks.
        state.owner.is_some() || (state.wanting() > state.known && state.known < most as usize)
    }

    /// Takes a task out. The scheduler must be notified if it was the last one and the scheduler
    /// knew of some.
    pub(crate) fn take(&self) -> Taken {
        let mut state = self.0.lock();
        let Some(task) = state.tasks.pop_front() else { return Taken::Empty };
        let tell = state.known > 0 && state.tasks.is_empty();
        Taken::Task(Running(task), tell)
    }

    /// Notes that a worker that was called has arrived.
    pub(crate) fn come(&self) {
        self.0.lock().called -= 1;
    }

    /// Runs a task that was taken out. Keeps its panic for the scope.
    pub(crate) fn run(&self, Running(task): Running) {
        // Only the scope could observe state that a panicking task leaves half done, and it panics
        // too.
        let panic = catch_unwind(AssertUnwindSafe(task)).err();
        let mut state = self.0.lock();
        state.unfinished -= 1;
        match panic {
            Some(panic) if state.panic.is_some() => {
                // Dropping a panic payload may run arbitrary code, which is not acceptable here.
                std::mem::forget(panic);
            }
            Some(panic) => state.panic = Some(panic),
            None => {}
        }
    }

    /// Returns the number of tasks without a thread that has come or is on its way, and records
    /// that the scheduler knows of them.
    pub(crate) fn tell_wanting(&self) -> usize {
        let mut state = self.0.lock();
        state.known = state.wanting();
        state.known
    }

    /// Returns whether all tasks have ended and no worker will look for more.
    pub(crate) fn is_done(&self) -> bool {
        self.0.lock().is_done()
    }

    /// Returns whether all tasks have ended. Workers may still have to leave.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.lock().unfinished == 0
    }

    /// Registers the wait of the owner, unless all is done. Returns whether the owner waits. The
    /// thread that gives it a slot removes the registration.
    pub(crate) fn register_owner(&self, parker: &Arc<Parker>) -> bool {
        let mut state = self.0.lock();
        let waits = !state.is_done();
        state.owner = waits.then(|| Arc::clone(parker));
        waits
    }

    /// Returns the thread that shall use another slot.
    pub(crate) fn next_thread(&self) -> NextThread {
        let mut state = self.0.lock();
        if let Some(parker) = state.owner.take() {
            return NextThread::Owner(parker);
        }
        state.helpers += 1;
        state.called += 1;
        state.known = state.known.saturating_sub(1);
        NextThread::Worker
    }

    /// Notes that a worker leaves. Returns the owner if it waits and this was the last worker: the
    /// worker's slot is then the owner's.
    pub(crate) fn leave(&self) -> Option<Arc<Parker>> {
        let mut state = self.0.lock();
        state.helpers -= 1;
        if state.is_done() { state.owner.take() } else { None }
    }

    /// Returns the payload of the first panic of a task, if there was one.
    pub(crate) fn panic(&self) -> Option<Box<dyn Any + Send>> {
        self.0.lock().panic.take()
    }
}
