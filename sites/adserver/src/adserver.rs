//! A running ad server: its threads, from start to stop.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bywash_levels::Gateway;
use bywash_site::Door;

use crate::fill::fill;
use crate::house::House;
use crate::store::{Store, Writer, Writing};
use crate::terms::Moment;
use crate::{AdServerError, Options, Stats, clerk, pool};

/// An ad server that serves until it is stopped or dropped.
#[derive(Debug)]
pub struct AdServer {
    house: Arc<House>,
    door: Door,
    clerks: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
}

impl AdServer {
    /// Opens the database, listens, and starts the pool, a thread for each clerk, one that writes and one for
    /// HTTP.
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
        let pool = (pool::open(&options)?, seed()?);
        let gateway = options.level_keys.as_deref().map(Gateway::read).transpose()?;
        let house = House::new(options, register, (key, boot), writing, pool, gateway);
        let mut writer = Writer::new(Arc::clone(&house), connection, to_write);
        writer.prime().map_err(|cause| AdServerError::Database { path, cause })?;
        // From here on a failure drops the server, which stops the threads started so far.
        let mut server = Self { house, door, clerks: Vec::new(), writer: None };
        server.writer = Some(spawn("adserver-writer", || writer.run())?);
        for _ in 0..server.house.options.clerks {
            let house = Arc::clone(&server.house);
            server.clerks.push(spawn("adserver-clerk", move || clerk::run(&house))?);
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
}

/// What random numbers begin with, which nobody can repeat.
fn seed() -> Result<u64, AdServerError> {
    let mut bits = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut entropy| entropy.read_exact(&mut bits));
    read.map_err(AdServerError::system("/dev/urandom"))?;
    Ok(u64::from_le_bytes(bits))
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
        for clerk in self.clerks.drain(..) {
            // A thread that panicked has said so on stderr; there is nothing left to stop in it.
            let _ = clerk.join();
        }
        self.house.pool.wait_until_empty();
        // After the last delivery, and before the door waits for the last answers, which the writer owes.
        if let Some(writer) = self.writer.take() {
            self.house.writing.settle();
            let _ = writer.join();
        }
        self.door.close();
    }
}
