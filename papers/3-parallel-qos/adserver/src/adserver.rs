//! A running ad server: starts and stops its threads.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bywash_levels::Gateway;
use bywash_site::Listener;

use crate::app_state::AppState;
use crate::fill::fill;
use crate::store::{Store, WriteQueue};
use crate::values::Timestamp;
use crate::writer::Writer;
use crate::{AdServerError, Fill, Options, Stats, pool, worker};

/// An ad server that serves until it is stopped or dropped.
#[derive(Debug)]
pub struct AdServer {
    state: Arc<AppState>,
    listener: Listener,
    workers: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
}

impl AdServer {
    /// Starts a server: opens the database, listens, and starts the pool, the workers, the writer
    /// thread and the HTTP thread.
    pub fn start(options: Options) -> Result<Self, AdServerError> {
        options.check()?;
        let listener = Listener::listen(options.listen)?;
        let path = options.database.clone();
        let mut store = Store::open(&path)?;
        if let Some(wanted) = options.fill {
            filled(&mut store, wanted, &path)?;
        }
        let Store { connection, register, key, boot } = store;
        let (write_queue, to_write) = WriteQueue::new();
        let pool = (pool::open(&options)?, seed()?);
        let gateway = options.level_keys.as_deref().map(Gateway::read).transpose()?;
        let state = AppState::new(options, register, (key, boot), write_queue, pool, gateway);
        let mut writer = Writer::new(Arc::clone(&state), connection, to_write);
        writer.prime().map_err(|cause| AdServerError::Database { path, cause })?;
        // If a later step fails, the server is dropped, which stops the threads that were started.
        let mut server = Self { state, listener, workers: Vec::new(), writer: None };
        server.writer = Some(spawn("adserver-writer", || writer.run())?);
        for _ in 0..server.state.options.workers {
            let state = Arc::clone(&server.state);
            server.workers.push(spawn("adserver-clerk", move || worker::run(&state))?);
        }
        server.listener.open("adserver-http", Arc::clone(&server.state))?;
        Ok(server)
    }

    /// Returns the address on which the server listens, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the statistics since the start.
    pub fn stats(&self) -> Stats {
        self.state.read_stats()
    }

    /// Stops and joins every thread. Waiting requests are refused, and running requests complete.
    /// Exact counts that are only in memory are written to the database. Dropping the server does
    /// the same.
    pub fn stop(self) {
        drop(self);
    }
}

/// Fills an empty database with the generated contracts. A database that is not empty stays
/// unchanged, and a message on stderr says so.
fn filled(store: &mut Store, wanted: Fill, path: &Path) -> Result<(), AdServerError> {
    if !store.register.is_empty() {
        // A failed write to stderr must not stop the server.
        let _unread = writeln!(
            io::stderr(),
            "adserver: {} is not empty, so --fill has no effect",
            path.display()
        );
        return Ok(());
    }
    let (change, register) = fill(wanted, Timestamp::now())
        .ok_or(AdServerError::Option("--fill: the contracts exceed what an ad server can have"))?;
    store.apply(path, &change)?;
    store.register = register;
    Ok(())
}

/// Returns an unpredictable random seed from `/dev/urandom`.
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
        self.state.close();
        for worker in self.workers.drain(..) {
            // A thread that panicked has already reported that on stderr, and needs no further
            // step.
            let _ = worker.join();
        }
        self.state.pool.wait_until_empty();
        // No delivery follows, so the writer can end. It must end before the listener, which waits
        // for answers of the writer.
        if let Some(writer) = self.writer.take() {
            self.state.write_queue.finish();
            let _ = writer.join();
        }
        self.listener.close();
    }
}

#[cfg(test)]
mod tests {
    use bywash_site::{PendingReply, ReplyReceiver};
    use tempfile::TempDir;

    use super::*;
    use crate::Level;
    use crate::answer::Answer;
    use crate::counters::RequestKind;
    use crate::request::ParsedRequest;
    use crate::values::Keyword;

    fn server(folder: &TempDir) -> AdServer {
        let fill = Some(Fill { contracts: 5, concepts: 1, seed: 1 });
        let database = folder.path().join("db");
        let options = Options { database, fill, threads: 2, workers: 1, ..Options::default() };
        AdServer::start(options).unwrap()
    }

    fn answer(server: &AdServer, receiver: ReplyReceiver<Answer>) -> Option<Answer> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(PendingReply::new(receiver, server.state.counters.departures()).answer())
    }

    #[test]
    fn a_page_that_panics_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        let server = server(&folder);
        let kind = RequestKind::Ad(Level::High);
        for _ in 0..20 {
            // One task of each page panics on some thread of the pool. There are more panics than
            // the pool has threads.
            let (handle, receiver) = server.state.receive(kind);
            let look = |_: &AppState, turn: &mut bywash_levels::Request| {
                let concepts = [1, 2, 3, 4];
                turn.map(&concepts, |concept| assert_ne!(*concept, 3, "on purpose"));
                Answer::Failed
            };
            server.state.submit_page(Level::High, handle, look).unwrap();
            assert!(matches!(answer(&server, receiver), Some(Answer::Failed)));
            let (handle, receiver) = server.state.receive(kind);
            let look = |_: &AppState, _: &mut bywash_levels::Request| Answer::Busy;
            server.state.submit_page(Level::High, handle, look).unwrap();
            assert!(matches!(answer(&server, receiver), Some(Answer::Busy)), "the next is served");
        }
        // The server counts a request shortly after it has answered it.
        let counts = || server.state.counters.requests(kind);
        let counted = || (counts().failed, counts().refused) == (20, 20);
        assert!((0..2_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            counted()
        }));
    }

    #[test]
    fn a_click_waits_for_no_admin_request() {
        let folder = tempfile::tempdir().unwrap();
        let server = server(&folder);
        let banner = Arc::clone(&server.state.snapshot().contracted[0]);
        let token = server.state.place(&banner, None);
        let locked = server.state.lock_changes();
        let keyword = Keyword::parse("new").unwrap();
        let waits = server.state.offer(ParsedRequest::AddConcept(keyword)).unwrap();
        let click = server.state.offer(ParsedRequest::Click(token)).unwrap();
        assert!(matches!(answer(&server, click), Some(Answer::Go(_))));
        drop(locked);
        assert!(matches!(answer(&server, waits), Some(Answer::Json(..))));
    }
}
