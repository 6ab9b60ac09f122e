//! The tasks of a scope, and that they do not outlive what they borrow.
//!
//! A task may borrow from the frame that opened its scope, and is run by threads that know nothing of that frame. So its
//! lifetime is erased when it is put into the bag, and the scope does not return before every task has been run to its
//! end or dropped: the only unsafe line of the crate rests on that, and on nothing else.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::seat::Seat;

type Task = Box<dyn FnOnce() + Send>;

/// The tasks of one scope.
///
/// Whoever runs tasks of it (the owner, workers) holds it by an `Arc`, so the bag itself outlives the scope; when the
/// scope has returned it is empty.
#[derive(Default)]
pub(crate) struct Bag(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    tasks: VecDeque<Task>,
    /// Tasks that were put in and have not ended.
    unfinished: usize,
    /// Workers that were called here and have not left.
    helpers: usize,
    /// Of these, those that have not come yet.
    called: usize,
    /// The scope's own thread, while it waits for a slot or for the others.
    owner: Option<Arc<Seat>>,
    /// Tasks that the desk knows to be wanting another thread.
    known: usize,
    /// Of the first task that panicked.
    panic: Option<Box<dyn Any + Send>>,
}

impl Inside {
    fn wanting(&self) -> usize {
        self.tasks.len().saturating_sub(self.called)
    }

    /// Nobody is at work here or will be.
    fn is_done(&self) -> bool {
        self.unfinished == 0 && self.helpers == 0
    }
}

/// Who uses another slot of a request.
pub(crate) enum Hand {
    /// Its own thread, which waits.
    Owner(Arc<Seat>),
    /// A worker.
    Worker,
}

/// What taking a task or ending one came to.
pub(crate) enum Taken {
    /// A task, after which nothing is left in the bag if so.
    Task(Running, bool),
    /// Nothing to take.
    Empty,
}

/// A task that was taken out: to be run, by [`Bag::run`].
pub(crate) struct Running(Task);

impl Bag {
    /// Puts a task in. Whether the desk must be told: not if it knows of `most`, which are all that it can do anything for.
    ///
    /// # Safety
    ///
    /// The caller does not return to where `'scope` may end before [`Bag::is_done`].
    #[allow(unsafe_code, reason = "tasks borrow from the frame of their scope")]
    pub(crate) unsafe fn put<'scope>(
        &self,
        task: Box<dyn FnOnce() + Send + 'scope>,
        most: u32,
    ) -> bool {
        // SAFETY: only the lifetime is changed. A task ends within `run`, which takes it by value, and `unfinished`
        // counts it until then; by the caller's promise `'scope` lasts as long.
        let task = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + 'scope>, Task>(task) };
        let mut inside = self.0.lock();
        inside.tasks.push_back(task);
        inside.unfinished += 1;
        // An owner that waits has been told of nothing since.
        inside.owner.is_some() || (inside.wanting() > inside.known && inside.known < most as usize)
    }

    /// Takes a task out. If it was the last, and the desk knew of some, it is to be told.
    pub(crate) fn take(&self) -> Taken {
        let mut inside = self.0.lock();
        let Some(task) = inside.tasks.pop_front() else { return Taken::Empty };
        let tell = inside.known > 0 && inside.tasks.is_empty();
        Taken::Task(Running(task), tell)
    }

    /// A worker that was called has come.
    pub(crate) fn come(&self) {
        self.0.lock().called -= 1;
    }

    /// Runs a task that was taken out. A panic of it is kept for the scope.
    pub(crate) fn run(&self, Running(task): Running) {
        // What a panicking task leaves half done is seen by nobody but the scope, which panics as well.
        let panic = catch_unwind(AssertUnwindSafe(task)).err();
        let mut inside = self.0.lock();
        inside.unfinished -= 1;
        match panic {
            Some(panic) if inside.panic.is_some() => {
                // To drop what a program threw may do anything, here of all places.
                std::mem::forget(panic);
            }
            Some(panic) => inside.panic = Some(panic),
            None => {}
        }
    }

    /// Tasks that wait for another thread than those that are on their way: for the desk, which knows of them then.
    pub(crate) fn tell_wanting(&self) -> usize {
        let mut inside = self.0.lock();
        inside.known = inside.wanting();
        inside.known
    }

    /// Whether all that was put in has ended, and nobody will look for more.
    pub(crate) fn is_done(&self) -> bool {
        self.0.lock().is_done()
    }

    /// Whether nothing is left but for workers to leave.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.lock().unfinished == 0
    }

    /// The owner waits, unless all is done. The seat is taken out by whoever gives it a slot.
    pub(crate) fn sit(&self, seat: &Arc<Seat>) -> bool {
        let mut inside = self.0.lock();
        let waits = !inside.is_done();
        inside.owner = waits.then(|| Arc::clone(seat));
        waits
    }

    /// Who comes with another slot.
    pub(crate) fn next_hand(&self) -> Hand {
        let mut inside = self.0.lock();
        if let Some(seat) = inside.owner.take() {
            return Hand::Owner(seat);
        }
        inside.helpers += 1;
        inside.called += 1;
        inside.known = inside.known.saturating_sub(1);
        Hand::Worker
    }

    /// A worker leaves. If it was the last and the owner waits, the worker's slot is the owner's.
    pub(crate) fn leave(&self) -> Option<Arc<Seat>> {
        let mut inside = self.0.lock();
        inside.helpers -= 1;
        if inside.is_done() { inside.owner.take() } else { None }
    }

    /// The panic of a task, if one did.
    pub(crate) fn panic(&self) -> Option<Box<dyn Any + Send>> {
        self.0.lock().panic.take()
    }
}
