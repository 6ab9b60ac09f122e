//! The upstream: one epoll thread that answers every request at once with 64 bytes, except those
//! for `/hold`, which it never answers.

use crate::http;
use crate::sys::Epoll;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

const LISTENER: usize = 0;
/// How often the thread looks whether it is to end.
const LOOK: i32 = 100;

/// A running upstream; ends when dropped.
#[derive(Debug)]
pub struct Upstream {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Upstream {
    /// Starts it on a free port, on the caller's core.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || serve(&listener, &told)));
        Ok(Self { port, stop, thread })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(Ok(Err(e))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("upstream: {e}");
        }
    }
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// The beginning of a request whose end has not come.
    unread: Vec<u8>,
}

fn serve(listener: &TcpListener, stop: &AtomicBool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (mut epoll, mut ready) = (Epoll::new(256)?, Vec::new());
    epoll.add(listener, LISTENER)?;
    let response = http::ok(&"x".repeat(64)).into_bytes();
    let (mut connections, mut room) = (HashMap::new(), vec![0; 16384]);
    let mut next = LISTENER + 1;
    while !stop.load(Ordering::Relaxed) {
        epoll.wait(LOOK, &mut ready)?;
        for token in &ready {
            if *token == LISTENER {
                accept(listener, &epoll, &mut connections, &mut next)?;
            } else if let Some(connection) = connections.get_mut(token)
                && connection.turn(&response, &mut room).is_err()
            {
                connections.remove(token);
            }
        }
    }
    Ok(())
}

fn accept(
    listener: &TcpListener,
    epoll: &Epoll,
    connections: &mut HashMap<usize, Connection>,
    next: &mut usize,
) -> io::Result<()> {
    while let Ok((stream, _)) = listener.accept() {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        epoll.add(&stream, *next)?;
        connections.insert(*next, Connection { stream, unread: Vec::new() });
        *next += 1;
    }
    Ok(())
}

impl Connection {
    /// Reads once and answers what is complete; an error is the end of the connection.
    fn turn(&mut self, response: &[u8], room: &mut [u8]) -> io::Result<()> {
        match self.stream.read(room) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.unread.extend_from_slice(&room[..count]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e),
        }
        while let Some(length) = http::head_length(&self.unread) {
            if !self.unread.starts_with(b"GET /hold") {
                self.stream.write_all(response)?;
            }
            self.unread.drain(..length);
        }
        Ok(())
    }
}
