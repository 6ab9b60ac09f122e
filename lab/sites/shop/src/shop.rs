//! A running shop and its threads, from start to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bywash_site::Listener;

use crate::app_state::AppState;
use crate::store::Store;
use crate::work::Worker;
use crate::{Options, ShopError, Stats};

/// A shop that serves until it is stopped or dropped.
#[derive(Debug)]
pub struct Shop {
    state: Arc<AppState>,
    listener: Listener,
    threads: Vec<JoinHandle<()>>,
}

impl Shop {
    /// Opens the database, listens, and starts one thread for each worker and one for HTTP. Fails
    /// if an option is invalid or if a part cannot start.
    pub fn start(options: Options) -> Result<Self, ShopError> {
        options.check()?;
        let listener = Listener::listen(options.listen)?;
        let (stores, orders) = Store::open_all(&options.database, options.workers)?;
        let state = Arc::new(AppState::new(options, orders));
        // If a later step fails, dropping the shop stops the threads that have started.
        let mut shop = Self { state, listener, threads: Vec::new() };
        for store in stores {
            let state = Arc::clone(&shop.state);
            shop.spawn("shop-worker", || Worker::new(state, store).run())?;
        }
        shop.listener.open("shop-http", Arc::clone(&shop.state))?;
        Ok(shop)
    }

    /// Returns the address that the shop listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the statistics since the shop started.
    pub fn stats(&self) -> Stats {
        self.state.read_stats()
    }

    /// Stops and joins every thread, within a few seconds. Waiting requests are refused, and
    /// running requests have one second to end. Dropping the shop does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), ShopError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
        self.threads.push(thread.map_err(ShopError::system("a thread"))?);
        Ok(())
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.state.close();
        self.listener.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it on standard error, and there is nothing left
            // to stop.
            let _ = thread.join();
        }
    }
}
