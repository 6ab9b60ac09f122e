//! A running store: starts and stops its threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bywash_lease::DatabaseName;
use bywash_site::Listener;
use tempfile::TempDir;

use crate::app_state::AppState;
use crate::lease::{DaemonConnection, LeaseClient};
use crate::store::{self, Store};
use crate::worker::Worker;
use crate::{BookstoreError, DatabaseUrl, Options, SchemaError, Stats};
use bywash_database::Pool;

/// A store that serves until it is stopped or dropped.
pub struct Bookstore {
    state: Arc<AppState>,
    listener: Listener,
    threads: Vec<JoinHandle<()>>,
    // Both fields must outlive the workers, which end in `drop`.
    _daemon: Option<DaemonConnection>,
    _folder: Option<TempDir>,
}

/// A database that contains the books.
pub(crate) struct Fixture {
    pub(crate) pool: Pool,
    /// The number of pages of each book in the database.
    pub(crate) pages: u32,
    /// The folder of a temporary database, which is removed with this value; `None` for any other
    /// database.
    folder: Option<TempDir>,
}

impl Fixture {
    /// Opens the database that the options name, and creates and fills its tables if they are
    /// missing.
    pub(crate) fn prepare(options: &Options) -> Result<Self, BookstoreError> {
        options.check()?;
        let (url, folder) = match options.database.clone() {
            DatabaseUrl::Sqlite(None) => {
                let folder = TempDir::new().map_err(BookstoreError::system("a folder"))?;
                (DatabaseUrl::Sqlite(Some(folder.path().join("bookstore.db"))), Some(folder))
            }
            url => (url, None),
        };
        let pool = Pool::new(url, options.silence);
        let pages = store::prepare(&pool, options.pages, Options::USUAL_PAGES)?;
        Ok(Self { pool, pages, folder })
    }
}

impl Bookstore {
    /// Starts a store: opens the database, listens, and starts one thread per worker and one for
    /// HTTP. Do not call this function in an event loop, because it blocks until the database is
    /// ready.
    pub fn start(options: Options) -> Result<Self, BookstoreError> {
        let listener = Listener::listen(options.listen)?;
        let fixture = Fixture::prepare(&options)?;
        let daemon =
            options.stopd.as_ref().map(|stopd| DaemonConnection::new(stopd.socket.clone()));
        let daemon = daemon.transpose().map_err(BookstoreError::system("a thread"))?;
        let lease_client = lease_client(&options, daemon.as_ref());
        let state = AppState::new(
            options,
            fixture.pool.url.dialect().name,
            fixture.pages,
            daemon.as_ref().map(DaemonConnection::begun),
        );
        // If a later step fails, the store is dropped, which stops the threads started so far.
        let mut bookstore = Self {
            state: Arc::new(state),
            listener,
            threads: Vec::new(),
            _daemon: daemon,
            _folder: fixture.folder,
        };
        for _ in 0..bookstore.state.options.workers {
            bookstore.spawn_worker(&fixture.pool, lease_client.clone())?;
        }
        bookstore.listener.open("bookstore-http", Arc::clone(&bookstore.state))?;
        Ok(bookstore)
    }

    /// Returns the address on which the store listens, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the statistics since the start.
    pub fn stats(&self) -> Stats {
        self.state.read_stats()
    }

    /// Stops and joins every thread. Waiting requests are refused, and running requests complete.
    /// Dropping the store does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn spawn_worker(
        &mut self,
        pool: &Pool,
        lease_client: Option<LeaseClient>,
    ) -> Result<(), BookstoreError> {
        let store = Store::new(pool, lease_client, self.state.options.tags);
        let mut store = store.map_err(BookstoreError::system("/dev/urandom"))?;
        store.open().map_err(SchemaError::from)?;
        let worker = Worker::new(Arc::clone(&self.state), store);
        let thread = thread::Builder::new().name("bookstore-worker".to_owned());
        let thread = thread.spawn(|| worker.run()).map_err(BookstoreError::system("a thread"))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Bookstore {
    fn drop(&mut self) {
        self.state.queue.close();
        self.listener.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already reported that on stderr, and needs no further
            // step.
            let _ = thread.join();
        }
    }
}

fn lease_client(options: &Options, daemon: Option<&DaemonConnection>) -> Option<LeaseClient> {
    let (daemon, stopd) = (daemon?, options.stopd.as_ref()?);
    let name = match options.database {
        DatabaseUrl::Sqlite(_) => DatabaseName::own(),
        DatabaseUrl::Postgres(_) | DatabaseUrl::MariaDb(_) => stopd.name.clone(),
    };
    Some(daemon.client(name))
}
