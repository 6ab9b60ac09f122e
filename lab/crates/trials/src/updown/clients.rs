//! Clients that send one request after another and record failures. Some keep a connection, and
//! some open a new one for each request.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bywash_harness::http;

/// Number of clients for each [`Manner`].
const EACH: usize = 4;
/// Pause between an answer and the next request. Connections are therefore idle for a while, as
/// real ones are.
const THINK: Duration = Duration::from_millis(2);
/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client's use of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// The client keeps its connection as long as possible. If the server closes the connection
    /// without announcing that in an answer, a request that is sent at the same time counts as
    /// failed.
    Kept,
    /// The client opens a new connection for every request.
    New,
}

impl Manner {
    /// Returns the name of the manner for the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::New => "new",
        }
    }
}

/// The result of one request.
#[derive(Debug)]
pub(super) struct RequestParts {
    /// The client's use of connections.
    pub(super) manner: Manner,
    /// Time until the end of the request. It counts from the connect if the request opened a
    /// connection, and otherwise from sending.
    pub(super) took: Duration,
    /// The error; `None` if the request was answered with 200.
    pub(super) failure: Option<String>,
}

/// Running clients, which stop when the value is dropped.
#[derive(Debug)]
pub(super) struct Clients {
    asked: Arc<Mutex<Vec<RequestParts>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts the clients of all manners against `port`.
    pub(super) fn start(port: u16) -> Self {
        let (asked, stop) =
            (Arc::<Mutex<Vec<RequestParts>>>::default(), Arc::<AtomicBool>::default());
        let manners = [[Manner::Kept; EACH], [Manner::New; EACH]].concat();
        let threads = manners.into_iter().map(|manner| {
            let (asked, stop) = (Arc::clone(&asked), Arc::clone(&stop));
            thread::spawn(move || live(port, manner, &asked, &stop))
        });
        Self { threads: threads.collect(), asked, stop }
    }

    /// Returns the results of the requests that ended since the last call.
    pub(super) fn take(&self) -> Vec<RequestParts> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that has panicked has printed its message.
            let _ = thread.join();
        }
    }
}

fn live(port: u16, manner: Manner, asked: &Mutex<Vec<RequestParts>>, stop: &AtomicBool) {
    let mut connection = None;
    while !stop.load(Ordering::Relaxed) {
        let at = Instant::now();
        let result = ask(port, &mut connection);
        let failure = result.err().map(|e| e.to_string());
        if failure.is_some() || manner == Manner::New {
            connection = None;
        }
        let one = RequestParts { manner, took: at.elapsed(), failure };
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        thread::sleep(THINK);
    }
}

/// Sends a request and reads the answer. Stores the connection in `connection` if it can carry
/// another request. Fails unless the answer is 200.
fn ask(port: u16, connection: &mut Option<TcpStream>) -> io::Result<()> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => connect(port).map_err(|e| io::Error::other(format!("connect: {e}")))?,
    };
    stream.write_all(http::get("/item").as_bytes())?;
    let answer = http::expect_200(&mut stream)?;
    *connection = Some(stream).filter(|_| answer.keep_alive);
    Ok(())
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_harness::upstream::{Behaviour, Upstream};

    fn wait_for(clients: &Clients, what: impl Fn(&RequestParts) -> bool) -> Option<RequestParts> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            if let Some(one) = clients.take().into_iter().find(&what) {
                return Some(one);
            }
            thread::yield_now();
        }
        None
    }

    #[test]
    fn what_is_answered_and_what_fails_is_seen_in_both_manners() {
        let upstream = Upstream::start().unwrap();
        let clients = Clients::start(upstream.port());
        for manner in [Manner::Kept, Manner::New] {
            assert!(
                wait_for(&clients, |one| one.manner == manner && one.failure.is_none()).is_some()
            );
        }
        upstream.set_behaviour(Behaviour::CutLength);
        for manner in [Manner::Kept, Manner::New] {
            assert!(
                wait_for(&clients, |one| one.manner == manner && one.failure.is_some()).is_some()
            );
        }
    }
}
