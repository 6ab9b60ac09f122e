//! A server that answers each request byte with a response: the byte `e` with the size of an
//! elephant, the byte `a` with the size of an ant.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bywash_shaper::{Lane, Mark};
use bywash_units::{Time, TimeSpan};

use super::{Load, ServerShaping};

/// Timeout of the sockets. It is longer than any part of the measurement.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of bytes per write. It is that of a program that streams its responses.
const CHUNK: usize = 16 << 10;
/// Byte with which the client stops the server.
const STOP: u8 = b's';

pub(super) struct Server {
    address: SocketAddr,
    accepting: JoinHandle<io::Result<()>>,
}

/// Starts the server. The calling thread must be in the network namespace in which the server is to
/// listen.
pub(super) fn start(means: ServerShaping, load: &Load) -> io::Result<Server> {
    let listener = TcpListener::bind("10.77.1.1:0")?;
    let address = listener.local_addr()?;
    let site = Arc::new(Site { means, load: load.clone(), begun: Instant::now() });
    let accepting = thread::spawn(move || {
        loop {
            let (connection, peer) = listener.accept()?;
            // Only [`Self::stop`] connects from this address.
            if peer.ip() == address.ip() {
                return Ok(());
            }
            let site = Arc::clone(&site);
            // A client that has left gets no more bytes. The error of that write does not matter.
            thread::spawn(move || site.serve(connection));
        }
    });
    Ok(Server { address, accepting })
}

impl Server {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server. The calling thread must be in the network namespace in which the server
    /// listens.
    pub(super) fn stop(self) -> io::Result<()> {
        TcpStream::connect(self.address)?.write_all(&[STOP])?;
        self.accepting.join().map_err(|_| io::Error::other("the server has panicked"))?
    }
}

struct Site {
    means: ServerShaping,
    load: Load,
    begun: Instant,
}

impl Site {
    fn serve(&self, mut connection: TcpStream) -> io::Result<()> {
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let (mut mark, mut wanted) = (Mark::default(), [0]);
        while connection.read(&mut wanted)? > 0 {
            let (lane, bytes) = match wanted[0] {
                b'e' => (Lane::Elephant, self.load.elephant_bytes),
                _ => (Lane::Ant, self.load.ant_bytes),
            };
            if let ServerShaping::Shaper(shaper) = &self.means {
                shaper.lane(&connection, &mut mark, lane)?;
            }
            self.answer(&mut connection, lane, bytes)?;
        }
        Ok(())
    }

    fn answer(&self, connection: &mut TcpStream, lane: Lane, mut left: usize) -> io::Result<()> {
        let chunk = [b'x'; CHUNK];
        while left > 0 {
            let bytes = left.min(CHUNK);
            if lane == Lane::Elephant {
                self.wait_for(bytes);
            }
            connection.write_all(&chunk[..bytes])?;
            left -= bytes;
        }
        Ok(())
    }

    fn wait_for(&self, bytes: usize) {
        let ServerShaping::Bucket(bucket) = &self.means else { return };
        let now = Time::ZERO + TimeSpan::from(self.begun.elapsed());
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let ready_at = bucket.take(now, bytes as u32);
        drop(bucket);
        if let Some(ready_at) = ready_at {
            thread::sleep(ready_at.since(now).to_std());
        }
    }
}
