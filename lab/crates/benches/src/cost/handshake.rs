//! The load generator for handshakes: clients that connect, complete a TLS 1.3 handshake without
//! resumption, and close.

use super::load::Counts;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use bywash_harness::client_socket;
use bywash_harness::tls;

/// Number of concurrent clients. It is large enough that the proxy always has a handshake to do.
const CLIENTS: usize = 8;
/// Number of source addresses. They are used in turn, because a closed connection keeps its port
/// occupied for a while.
const SOURCES: usize = 64;

/// A running load generator for handshakes.
#[derive(Debug)]
pub struct Handshakes {
    done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Handshakes {
    /// Starts the load generator against `port`, on the caller's core.
    pub fn start(port: u16) -> io::Result<Self> {
        let (done, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let client = tls::Client::new()?;
        let threads = (0..CLIENTS).map(|n| {
            let (client, done, stop) = (client.clone(), Arc::clone(&done), Arc::clone(&stop));
            thread::spawn(move || {
                let mut sources = (n..SOURCES).step_by(CLIENTS).cycle().map(client_socket::address);
                while let Some(source) = sources.next().filter(|_| !stop.load(Ordering::Relaxed)) {
                    client.connect(client_socket::connect_from(source, port)?)?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        });
        Ok(Self { threads: threads.collect(), done, stop })
    }

    /// Returns the counts since the start. Any error ends the load generator, so the counts contain
    /// no unexpected outcomes.
    pub fn counts(&self) -> Counts {
        Counts { expected: self.done.load(Ordering::Relaxed), unexpected: 0, reopened: 0 }
    }

    /// Stops the load generator and returns its counts. Fails if the load generator had already
    /// ended with an error, and returns that error.
    pub fn stop(self) -> io::Result<Counts> {
        let counts = self.counts();
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| io::Error::other("the load panicked"))??;
        }
        Ok(counts)
    }
}
