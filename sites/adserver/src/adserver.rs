//! A running ad server: its threads, from start to stop.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bywash_site::Door;

use crate::fill::fill;
use crate::house::House;
use crate::serve::{Chance, Selector};
use crate::store::{Store, Writer, Writing};
use crate::terms::Moment;
use crate::worker::Worker;
use crate::{AdServerError, Options, Stats};

/// An ad server that serves until it is stopped or dropped.
#[derive(Debug)]
pub struct AdServer {
    house: Arc<House>,
    door: Door,
    workers: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
}

impl AdServer {
    /// Opens the database, listens, and starts one thread per worker, one that writes and one for HTTP.
    pub fn start(options: Options) -> Result<Self, AdServerError> {
        options.check()?;
        let door = Door::listen(options.listen)?;
        let path = options.database.clone();
        let mut store = Store::open(&path)?;
        if let Some(wanted) = options.fill.filter(|_| store.register.is_empty()) {
            let filled = fill(wanted, Moment::now());
            let (change, register) = filled.ok_or(AdServerError::Option("too much to fill"))?;
            store.apply(&path, &change)?;
            store.register = register;
        }
        let Store { connection, register, key, boot } = store;
        let (writing, to_write) = Writing::new();
        let house = Arc::new(House::new(options, register, (key, boot), writing));
        let mut writer = Writer::new(Arc::clone(&house), connection, to_write);
        writer.prime().map_err(|cause| AdServerError::Database { path, cause })?;
        // From here on a failure drops the server, which stops the threads started so far.
        let mut server = Self { house, door, workers: Vec::new(), writer: None };
        server.writer = Some(spawn("adserver-writer", || writer.run())?);
        for _ in 0..server.house.options.workers {
            server.hire()?;
        }
        server.door.open("adserver-http", Arc::clone(&server.house))?;
        Ok(server)
    }

    /// Where it listens, with the port it got.
    pub fn address(&self) -> SocketAddr {
        self.door.address()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.house.reading()
    }

    /// Stops and joins every thread: waiting requests are refused, running ones end by themselves, and what is exact in
    /// memory is written. Dropping the server does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn hire(&mut self) -> Result<(), AdServerError> {
        let chance = File::open("/dev/urandom").and_then(Chance::drawn);
        let chance = chance.map_err(AdServerError::system("/dev/urandom"))?;
        let worker = Worker::new(Arc::clone(&self.house), Selector::new(chance));
        self.workers.push(spawn("adserver-worker", || worker.run())?);
        Ok(())
    }
}

fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, AdServerError> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map_err(AdServerError::system("a thread"))
}

impl Drop for AdServer {
    fn drop(&mut self) {
        self.house.close();
        for worker in self.workers.drain(..) {
            // A thread that panicked has said so on stderr; there is nothing left to stop in it.
            let _ = worker.join();
        }
        // After the last delivery, and before the door waits for the last answers, which the writer owes.
        if let Some(writer) = self.writer.take() {
            self.house.writing.settle();
            let _ = writer.join();
        }
        self.door.close();
    }
}
