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

/// A future that runs on the thread that made it.
pub(crate) type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The state that the requests of one thread share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    /// Delivers new settings, which the next call of [`Worker::settings`] takes.
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

    /// Returns the settings in force. They may change between two calls, so a caller that needs the
    /// same ones for longer keeps them.
    pub(crate) fn settings(&self) -> Rc<Settings> {
        let mut changes = self.changes.borrow_mut();
        if changes.has_changed().unwrap_or(false) {
            let settings = Arc::clone(&changes.borrow_and_update());
            self.change(&settings);
        }
        Rc::clone(&self.settings.borrow())
    }

    /// The connections to the servers that are in force.
    pub(crate) fn pool(&self) -> Rc<Pool> {
        Rc::clone(&self.pool.borrow())
    }

    /// Polls the future of a request whose client has left.
    pub(crate) fn spawn_departed(&self, request: impl Future<Output = ()> + 'static) {
        // If the task is gone the worker is ending, and the request with it.
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

/// Returns how many connections to servers this worker keeps.
fn bounds(shared: &Shared, settings: &Settings) -> Bounds {
    Bounds::of(&settings.config.upstream, shared.worker_count())
}
