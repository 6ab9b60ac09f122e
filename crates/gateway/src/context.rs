//! The state that the requests of one worker thread share.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::settings::Settings;
use crate::shared::Shared;
use crate::upstream::{Bounds, Pool};

/// A future that runs on the thread that created it.
pub(crate) type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The state that the requests of one worker thread share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    /// Delivers new settings after a reload. The next call of [`Worker::settings`] takes them.
    changes: RefCell<watch::Receiver<Arc<Settings>>>,
    settings: RefCell<Rc<Settings>>,
    pool: RefCell<Rc<Pool>>,
    /// Sends the futures of requests whose clients have left to the task that polls them.
    departed: UnboundedSender<LocalFuture>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        mut changes: watch::Receiver<Arc<Settings>>,
        departed: UnboundedSender<LocalFuture>,
    ) -> Self {
        let settings = Rc::new(Settings::clone(&changes.borrow_and_update()));
        let pool = RefCell::new(Rc::new(new_pool(&shared, &settings)));
        let (changes, settings) = (RefCell::new(changes), RefCell::new(settings));
        Self { shared, changes, settings, pool, departed }
    }

    /// Returns the settings in force. Two calls may return different settings after a reload, so a
    /// caller that needs the same settings for several steps keeps the returned value.
    pub(crate) fn settings(&self) -> Rc<Settings> {
        let mut changes = self.changes.borrow_mut();
        if changes.has_changed().unwrap_or(false) {
            let settings = Arc::clone(&changes.borrow_and_update());
            self.change(&settings);
        }
        Rc::clone(&self.settings.borrow())
    }

    /// Returns this worker's pool of connections to the servers in its settings. The settings are
    /// those that the last call of [`Worker::settings`] returned.
    pub(crate) fn pool(&self) -> Rc<Pool> {
        Rc::clone(&self.pool.borrow())
    }

    /// Hands the future of a request whose client has left to a task of this worker, which polls it
    /// to its end. Drops the future if the worker is ending.
    pub(crate) fn spawn_departed(&self, request: impl Future<Output = ()> + 'static) {
        // Sending fails only if the task has ended, because the worker is ending. The future is
        // then dropped.
        let _ = self.departed.send(Box::pin(request));
    }

    fn change(&self, settings: &Settings) {
        let same = Arc::ptr_eq(self.pool.borrow().upstreams(), &settings.upstreams);
        if same {
            self.pool.borrow().keeps(bounds(&self.shared, settings));
        } else {
            self.pool.replace(Rc::new(new_pool(&self.shared, settings))).retire();
        }
        *self.settings.borrow_mut() = Rc::new(settings.clone());
    }
}

fn new_pool(shared: &Shared, settings: &Settings) -> Pool {
    Pool::new(Arc::clone(&settings.upstreams), bounds(shared, settings), Arc::clone(&shared.memory))
}

/// Returns the bounds of the pool of connections of one worker.
fn bounds(shared: &Shared, settings: &Settings) -> Bounds {
    Bounds::of(&settings.config.upstream, shared.worker_count())
}
