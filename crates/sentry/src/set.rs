//! Detects disconnects on the async runtime of the calling thread. This is for a server on tokio
//! with many connections, such as the gateway.
//!
//! A program that waits for something else (a slot, a database) does not read from its client. So
//! it does not learn that the client has closed, because a pipelined request or an unread body
//! precedes the end of file. But the kernel knows. A [`Watch`] is an epoll set that only asks for
//! `EPOLLRDHUP`. Each connection is added once, when it is accepted, and a disconnect is reported
//! even if data is unread.
//!
//! The set is itself a file descriptor in the runtime of the thread that uses it. So a disconnect
//! wakes no thread on another core, and there is no cost per request.
//!
//! One case is not detected: if more unread bytes precede a FIN than the socket's buffer holds, the
//! FIN has not arrived yet. A program that waits must therefore read ahead.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The condition under which a peer counts as disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The peer sends nothing more (FIN), or has reset the connection.
    SendingEnded,
    /// Both directions have ended, or the peer has reset the connection. A peer that has only shut
    /// down its sending side is still present.
    BothEnded,
}

/// A set of connections that reports which peers disconnect.
#[derive(Debug)]
pub struct Watch {
    set: AsyncFd<OwnedFd>,
}

/// The maximum number of events that are taken from the kernel at once.
const BATCH: usize = 256;

impl Watch {
    /// Creates an empty set. Must be called within a tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// If the process or the system has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        #[allow(unsafe_code, reason = "tokio leaves the validity of a descriptor to its caller")]
        // SAFETY: `set` was just created and is open. It moves into the `AsyncFd`, which then is
        // its only owner, so it stays open and the same until the `AsyncFd` is dropped.
        // `OwnedFd::as_raw_fd` returns the same number every time.
        let set = unsafe { AsyncFd::register_with_interest(set, Interest::READABLE) }?;
        Ok(Self { set })
    }

    /// Watches a connection until this process closes it. Closing removes the connection from the
    /// set. A peer that has already left is reported like any other.
    ///
    /// # Errors
    /// If the system's limit on watches is reached.
    pub fn add(&self, connection: impl AsFd, token: u64, departure: Departure) -> io::Result<()> {
        // A reset and the end of both directions are always reported.
        let flags = match departure {
            Departure::SendingEnded => EventFlags::RDHUP | EventFlags::ET,
            Departure::BothEnded => EventFlags::ET,
        };
        epoll::add(self.set.get_ref(), connection, EventData::new_u64(token), flags)?;
        Ok(())
    }

    /// Waits for disconnects, and calls `departed` with the token of each. A token may be reported
    /// more than once, even after this process has closed the connection of the token.
    ///
    /// # Errors
    /// If the kernel returns an error. The watch is then unusable.
    pub async fn departures(&self, mut departed: impl FnMut(u64)) -> io::Result<()> {
        let mut ready = self.set.readable().await?;
        let mut events = Vec::<Event>::with_capacity(BATCH);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(self.set.get_ref(), spare, Some(&at_once)) {
                Ok(0) => break,
                Ok(_) => events.iter().for_each(|event| departed(event.data.u64())),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        ready.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (ours, listener.accept().unwrap().0)
    }

    /// Waits for the next report, and returns its tokens. Panics if a timeout passes without a
    /// report.
    async fn next(watch: &Watch) -> Vec<u64> {
        let mut tokens = Vec::new();
        let wait = watch.departures(|token| tokens.push(token));
        let limit = std::time::Duration::from_secs(20);
        tokio::time::timeout(limit, wait).await.expect("nobody was seen to leave").unwrap();
        tokens
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
    }

    #[test]
    fn a_close_behind_unread_bytes_is_seen() {
        run(async {
            let (mut client, server) = pair();
            let watch = Watch::new().unwrap();
            watch.add(&server, 7, Departure::SendingEnded).unwrap();
            client.write_all(&[b'x'; 1000]).unwrap();
            drop(client);
            assert_eq!(next(&watch).await, [7]);
        });
    }

    #[test]
    fn one_who_left_before_the_watch_began_is_seen() {
        run(async {
            let (client, server) = pair();
            drop(client);
            let watch = Watch::new().unwrap();
            watch.add(&server, 3, Departure::SendingEnded).unwrap();
            assert_eq!(next(&watch).await, [3]);
        });
    }

    #[test]
    fn a_half_close_is_a_departure_only_if_asked_for() {
        run(async {
            let (half, server) = pair();
            let (whole, other) = pair();
            let watch = Watch::new().unwrap();
            watch.add(&server, 1, Departure::BothEnded).unwrap();
            watch.add(&other, 2, Departure::SendingEnded).unwrap();
            half.shutdown(Shutdown::Write).unwrap();
            whole.shutdown(Shutdown::Write).unwrap();
            // Both have shut down, in this order. Only the second is reported.
            assert_eq!(next(&watch).await, [2]);
        });
    }
}
