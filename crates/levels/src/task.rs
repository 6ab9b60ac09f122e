//! The tasks of a scope, which may borrow data and do not outlive it.
//!
//! A task may borrow from the frame that opened its scope. The threads that run the task know
//! nothing of that frame, so the task's lifetime is erased when it is put into the task queue. In
//! return, the scope does not return before every task has run to its end or was dropped. The
//! soundness of this crate's unsafe lines rests on that alone.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::parker::Parker;

type Task = Box<dyn FnOnce() + Send>;

/// The queue of the tasks of one scope.
///
/// Each thread that runs tasks (the owner and the workers) holds the queue by an `Arc`, so the
/// queue may outlive the scope. When the scope has returned, the queue is empty.
#[derive(Default)]
pub(crate) struct TaskQueue(Mutex<State>);

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// The number of tasks that were put in and have not ended, whether they run or not.
    unfinished: usize,
    /// The number of workers that were called to this task queue and have not left.
    helpers: usize,
    /// The number of workers that were called to this task queue and have not arrived at it yet.
    called: usize,
    /// The parker of the scope's own thread, while that thread waits for a slot or for the workers;
    /// otherwise `None`.
    owner: Option<Arc<Parker>>,
    /// The number of queued tasks without a called worker that was last reported to the scheduler.
    known: usize,
    /// The payload of the first panic of a task, until the scope takes it.
    panic: Option<Box<dyn Any + Send>>,
}

impl State {
    fn wanting(&self) -> usize {
        self.tasks.len().saturating_sub(self.called)
    }

    /// Returns whether all tasks have ended and all workers that were called have left.
    fn is_done(&self) -> bool {
        self.unfinished == 0 && self.helpers == 0
    }
}

/// The thread that is to use another slot of a request.
pub(crate) enum NextThread {
    /// The request's own thread, which waits with this parker.
    Owner(Arc<Parker>),
    /// A worker of the pool.
    Worker,
}

/// The result of [`TaskQueue::take`].
pub(crate) enum Taken {
    /// A task. The flag says whether the scheduler must be notified, because the task queue is now
    /// empty.
    Task(Running, bool),
    /// The task queue is empty.
    Empty,
}

/// A task that was taken from the queue. [`TaskQueue::run`] runs it.
pub(crate) struct Running(Task);

impl TaskQueue {
    /// Adds a task. Returns whether the scheduler must be notified. A notification is not necessary
    /// if the scheduler already knows of `most` tasks, because it cannot provide more threads.
    ///
    /// # Safety
    ///
    /// The caller must not return to code where `'scope` may end before [`TaskQueue::is_done`]
    /// returns true.
    #[allow(unsafe_code, reason = "tasks borrow from the frame of their scope")]
    pub(crate) unsafe fn put<'scope>(
        &self,
        task: Box<dyn FnOnce() + Send + 'scope>,
        most: u32,
    ) -> bool {
        // SAFETY: only the lifetime is changed. A task ends within `run`, which takes it by value,
        // and `unfinished` counts it until then. The caller promises that `'scope` lasts as long.
        let task = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + 'scope>, Task>(task) };
        let mut state = self.0.lock();
        state.tasks.push_back(task);
        state.unfinished += 1;
        // An owner that waits has to be notified of the first new task.
        state.owner.is_some() || (state.wanting() > state.known && state.known < most as usize)
    }

    /// Takes a task from the queue. The scheduler must be notified if the task was the last one and
    /// the scheduler knew of some.
    pub(crate) fn take(&self) -> Taken {
        let mut state = self.0.lock();
        let Some(task) = state.tasks.pop_front() else { return Taken::Empty };
        let tell = state.known > 0 && state.tasks.is_empty();
        Taken::Task(Running(task), tell)
    }

    /// Notes that a worker that was called to this queue has arrived.
    pub(crate) fn note_arrival(&self) {
        self.0.lock().called -= 1;
    }

    /// Runs a task that was taken from the queue. If the task panics, the payload of the first
    /// panic is kept for the scope.
    pub(crate) fn run(&self, Running(task): Running) {
        // A panicking task may leave state half done. Only the scope could observe that state, and
        // the scope panics, too.
        let panic = catch_unwind(AssertUnwindSafe(task)).err();
        let mut state = self.0.lock();
        state.unfinished -= 1;
        match panic {
            Some(panic) if state.panic.is_some() => {
                // The payload is not dropped: its destructor may run arbitrary code, which is not
                // acceptable here.
                std::mem::forget(panic);
            }
            Some(panic) => state.panic = Some(panic),
            None => {}
        }
    }

    /// Returns the number of queued tasks for which no worker has been called, and records that the
    /// scheduler knows of them.
    pub(crate) fn tell_wanting(&self) -> usize {
        let mut state = self.0.lock();
        state.known = state.wanting();
        state.known
    }

    /// Returns whether all tasks have ended and every worker has left.
    pub(crate) fn is_done(&self) -> bool {
        self.0.lock().is_done()
    }

    /// Returns whether all tasks have ended. Workers may still have to leave the queue.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.lock().unfinished == 0
    }

    /// Registers the parker of the owner, unless all tasks have ended and all workers have left.
    /// Returns whether the owner is to wait. The thread that gives the owner a slot removes the
    /// registration.
    pub(crate) fn register_owner(&self, parker: &Arc<Parker>) -> bool {
        let mut state = self.0.lock();
        let waits = !state.is_done();
        state.owner = waits.then(|| Arc::clone(parker));
        waits
    }

    /// Returns the thread that is to use another slot: the owner if it waits, and otherwise a
    /// worker.
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

    /// Notes that a worker leaves the queue. If this was the last worker and the owner waits,
    /// returns the owner's parker: the worker's slot then goes to the owner.
    pub(crate) fn leave(&self) -> Option<Arc<Parker>> {
        let mut state = self.0.lock();
        state.helpers -= 1;
        if state.is_done() { state.owner.take() } else { None }
    }

    /// Takes the payload of the first panic of a task; `None` if no task panicked.
    pub(crate) fn panic(&self) -> Option<Box<dyn Any + Send>> {
        self.0.lock().panic.take()
    }
}
