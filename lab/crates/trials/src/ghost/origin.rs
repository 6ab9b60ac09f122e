//! A slow upstream, which reports when a request arrives and when its connection ends. It answers
//! on command.
//!
//! Each connection has a thread that is blocked in `read`, so that the end of a connection is timed
//! as soon as the kernel knows it. The path selects the response. A request for `/hold/…` gets no
//! response until [`Origin::answer`]. A request for `/stream/…` gets the beginning of a response. A
//! request for `/stall/…` gets no response, and its body stays unread. Any other request is
//! answered immediately.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bywash_harness::http;

/// The beginning of a streamed response. The client waits for these bytes before it leaves.
pub const STREAMED: &[u8] = b"the beginning of a long body";

/// A connection from the proxy to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    id: usize,
    /// Address of the proxy's end of the connection.
    pub peer: SocketAddrV4,
}

#[derive(Debug)]
enum Seen {
    Arrived { path: String, on: Connection },
    Ended { on: Connection, at: Instant },
}

type Streams = Arc<Mutex<HashMap<usize, TcpStream>>>;

/// A running upstream, which serves until this process ends.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddrV4,
    seen: Receiver<Seen>,
    log: Vec<Seen>,
    streams: Streams,
}

impl Origin {
    /// Starts an upstream on a free port of 127.0.0.1.
    pub fn open() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = v4(listener.local_addr()?)?;
        let (tell, seen) = mpsc::channel();
        let streams = Streams::default();
        let shared = Arc::clone(&streams);
        thread::spawn(move || accept_all(&listener, &tell, &shared));
        Ok(Self { address, seen, log: Vec::new(), streams })
    }

    /// Returns the upstream's address.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Discards all events that the upstream has reported so far.
    pub fn forget(&mut self) {
        while self.seen.try_recv().is_ok() {}
        self.log.clear();
    }

    /// Waits at most `bound` for a request for `path`, and returns its connection. A request that
    /// has arrived since the last [`Origin::forget`] counts as well. Returns `None` if no such
    /// request arrives in time.
    pub fn wait_arrival(&mut self, path: &str, bound: Duration) -> Option<Connection> {
        self.wait(bound, |seen| match seen {
            Seen::Arrived { path: arrived, on } => (arrived == path).then_some(*on),
            Seen::Ended { .. } => None,
        })
    }

    /// Waits at most `bound` until the proxy closes or resets `connection`, and returns the time of
    /// that event. Returns `None` if the connection stays open.
    pub fn wait_end(&mut self, connection: Connection, bound: Duration) -> Option<Instant> {
        self.wait(bound, |seen| match seen {
            Seen::Ended { on, at } => (*on == connection).then_some(*at),
            Seen::Arrived { .. } => None,
        })
    }

    /// Returns whether a request whose path begins with `prefix` has arrived or arrives within
    /// `bound`.
    pub fn wait_request(&mut self, prefix: &str, bound: Duration) -> bool {
        let arrived = |seen: &Seen| match seen {
            Seen::Arrived { path, .. } => path.starts_with(prefix).then_some(()),
            Seen::Ended { .. } => None,
        };
        self.wait(bound, arrived).is_some()
    }

    /// Answers the request held on `connection`.
    pub fn answer(&self, connection: &Connection) -> io::Result<()> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || io::Error::other("the proxy closed the connection of a held request");
        let mut stream = streams.get(&connection.id).ok_or_else(gone)?;
        stream.write_all(http::ok("done").as_bytes())
    }

    /// Closes the connection from the upstream's side.
    pub fn close(&self, connection: Connection) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = streams.remove(&connection.id) {
            // An error means that the connection has already ended.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn wait<T>(&mut self, bound: Duration, find: impl Fn(&Seen) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + bound;
        if let Some(found) = self.log.iter().find_map(&find) {
            return Some(found);
        }
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            let seen = self.seen.recv_timeout(left).ok()?;
            let found = find(&seen);
            self.log.push(seen);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

fn accept_all(listener: &TcpListener, tell: &Sender<Seen>, streams: &Streams) {
    for (id, stream) in listener.incoming().flatten().enumerate() {
        let Ok((on, copy)) = register(id, &stream) else {
            continue;
        };
        streams.lock().unwrap_or_else(PoisonError::into_inner).insert(id, copy);
        let (tell, streams) = (tell.clone(), Arc::clone(streams));
        thread::spawn(move || {
            if serve(stream, on, &tell).is_some() {
                streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            }
        });
    }
}

fn register(id: usize, stream: &TcpStream) -> io::Result<(Connection, TcpStream)> {
    stream.set_nodelay(true)?;
    Ok((Connection { id, peer: v4(stream.peer_addr()?)? }, stream.try_clone()?))
}

/// Serves requests until the connection ends. Returns `None` if the connection must stay open and
/// unread.
fn serve(mut stream: TcpStream, on: Connection, tell: &Sender<Seen>) -> Option<()> {
    let mut unread = Vec::new();
    while let Ok(head) = http::read_head(&mut stream, &mut unread) {
        tell.send(Seen::Arrived { path: head.path.clone(), on }).ok()?;
        if head.path.starts_with("/stall/") {
            return None;
        }
        let read = http::read_body(&mut stream, &mut unread, &head);
        if read.and_then(|()| stream.write_all(reply(&head.path).as_bytes())).is_err() {
            break;
        }
    }
    tell.send(Seen::Ended { on, at: Instant::now() }).ok()
}

fn reply(path: &str) -> String {
    if path.starts_with("/hold/") {
        String::new()
    } else if path.starts_with("/stream/") {
        let part = String::from_utf8_lossy(STREAMED);
        format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{part}")
    } else {
        http::ok("done")
    }
}

fn v4(address: SocketAddr) -> io::Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(io::Error::other("an IPv6 address on an IPv4 socket")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const BOUND: Duration = Duration::from_secs(5);

    fn client(origin: &Origin, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    #[test]
    fn a_held_request_is_answered_when_told_and_its_end_is_seen() {
        let mut origin = Origin::open().unwrap();
        let mut stream = client(&origin, &http::get("/hold/1"));
        let connection = origin.wait_arrival("/hold/1", BOUND).unwrap();
        assert_eq!(SocketAddr::V4(connection.peer), stream.local_addr().unwrap());
        origin.answer(&connection).unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        drop(stream);
        assert!(origin.wait_end(connection, BOUND).is_some());
    }

    #[test]
    fn what_arrived_is_remembered_until_it_is_forgotten() {
        let mut origin = Origin::open().unwrap();
        let _kept = client(&origin, &http::get("/victim/1/2"));
        assert!(origin.wait_request("/victim/1/", BOUND));
        assert!(origin.wait_request("/victim/1/", Duration::ZERO));
        origin.forget();
        assert!(!origin.wait_request("/victim/1/", Duration::ZERO));
    }
}
