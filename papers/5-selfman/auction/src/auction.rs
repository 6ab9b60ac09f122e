//! A running auction site: starts and stops its threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bywash_database::{DatabaseUrl, Pool};
use bywash_site::Listener;
use tempfile::TempDir;

use crate::app_state::{AppState, work};
use crate::store::{self, Store};
use crate::{AuctionError, Options, Stats};

/// An auction site that serves until it is stopped or dropped.
pub struct Auction {
    state: Arc<AppState>,
    listener: Listener,
    threads: Vec<JoinHandle<()>>,
    /// The folder of a temporary database; `None` for any other database. It must outlive the
    /// workers, which end in `drop`.
    _folder: Option<TempDir>,
}

impl Auction {
    /// Starts an auction site: opens the database, listens, and starts one thread per worker and
    /// one for HTTP. Do not call this function in an event loop, because it blocks until the
    /// database is ready.
    pub fn start(options: Options) -> Result<Self, AuctionError> {
        options.check()?;
        let listener = Listener::listen(options.listen)?;
        let (url, folder) = match options.database.clone() {
            DatabaseUrl::Sqlite(None) => {
                let folder = TempDir::new().map_err(AuctionError::system("a folder"))?;
                (DatabaseUrl::Sqlite(Some(folder.path().join("auction.db"))), Some(folder))
            }
            url @ (DatabaseUrl::Sqlite(Some(_))
            | DatabaseUrl::Postgres(_)
            | DatabaseUrl::MariaDb(_)) => (url, None),
        };
        let pool = Pool::new(url, options.silence);
        store::prepare(&pool, &options.sizes)?;
        let state = Arc::new(AppState::new(options));
        // If a later step fails, the auction is dropped, which stops the threads started so far.
        let mut auction = Self { state, listener, threads: Vec::new(), _folder: folder };
        for _ in 0..auction.state.options.workers {
            auction.spawn_worker(&pool)?;
        }
        auction.listener.open("auction-http", Arc::clone(&auction.state))?;
        Ok(auction)
    }

    /// Returns the address on which the auction site listens, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the statistics since the start.
    pub fn stats(&self) -> Stats {
        self.state.read_stats()
    }

    /// Stops and joins every thread. Waiting requests are refused, and running requests complete.
    /// Dropping the auction does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn spawn_worker(&mut self, pool: &Pool) -> Result<(), AuctionError> {
        let mut store = Store::new(pool);
        store.open()?;
        let state = Arc::clone(&self.state);
        let thread = thread::Builder::new().name("auction-worker".to_owned());
        let thread =
            thread.spawn(|| work(state, store)).map_err(AuctionError::system("a thread"))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Auction {
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
