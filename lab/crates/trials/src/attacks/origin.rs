//! The application behind the programs under test. It has a bounded number of workers, each of
//! which reads a whole body, works for a while and writes the answer.
//!
//! One thread serves each connection. A request holds a worker from the end of its head to the last
//! byte of its answer. A request that a proxy forwards slowly therefore holds a worker for that
//! time, as in applications with a pool of processes or threads. `/bytes/N` is answered with N
//! bytes. `/healthz` is answered at once and without a worker. Everything else is answered with 64
//! bytes.

use super::texts::SLOTS;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bywash_harness::http;

/// Maximum number of bytes per write.
const PART: usize = 16 * 1024;
/// Stack size in bytes, enough for the few frames of a connection's thread.
const STACK: usize = 128 * 1024;
/// Size in bytes of the answer to a path that names no size.
const USUAL: usize = 64;

/// A running application, which stops accepting connections when the value is dropped.
#[derive(Debug)]
pub(super) struct Origin {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    service: Duration,
    status: u16,
    free: Mutex<usize>,
    freed: Condvar,
}

impl Origin {
    /// Starts an application on a free port. It works for `service` on each request and answers
    /// with `status`.
    pub(super) fn start(service: Duration, status: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        bywash_harness::sys::set_backlog(&listener, 4096)?;
        let port = listener.local_addr()?.port();
        let (stop, free, freed) = (AtomicBool::new(false), Mutex::new(SLOTS), Condvar::new());
        let shared = Arc::new(Shared { stop, service, status, free, freed });
        let thread_shared = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &thread_shared));
        Ok(Self { port, shared })
    }

    /// Returns the port that the application listens on.
    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // The connect wakes the thread that accepts connections. If that thread has ended, nothing
        // needs to be woken.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let (Ok(stream), shared) = (stream, Arc::clone(shared)) else { continue };
        let serve = move || {
            // A connection that ends is not an error of the application.
            let _ = serve(stream, &shared);
        };
        // If no thread can be started, the connection is closed, and the proxy notices that.
        let _ = thread::Builder::new().stack_size(STACK).spawn(serve);
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::new();
    loop {
        let head = http::read_head(&mut stream, &mut unread)?;
        if head.path == "/healthz" {
            write_answer(&mut stream, 200, USUAL)?;
            continue;
        }
        let _worker = Worker::take(shared);
        http::read_body(&mut stream, &mut unread, &head)?;
        thread::sleep(shared.service);
        let size = head.path.strip_prefix("/bytes/").and_then(|size| size.parse().ok());
        write_answer(&mut stream, shared.status, size.unwrap_or(USUAL))?;
    }
}

fn write_answer(stream: &mut TcpStream, status: u16, size: usize) -> io::Result<()> {
    let mut answer =
        format!("HTTP/1.1 {status} Said\r\nContent-Length: {size}\r\n\r\n").into_bytes();
    let head = answer.len();
    answer.resize(head + size.min(PART), b'x');
    stream.write_all(&answer)?;
    let mut left = size - size.min(PART);
    while left > 0 {
        let part = left.min(PART);
        stream.write_all(&[b'x'; PART][..part])?;
        left -= part;
    }
    Ok(())
}

/// A guard for the worker that a request holds. The worker is available again when the guard is
/// dropped.
struct Worker<'a>(&'a Shared);

impl<'a> Worker<'a> {
    fn take(shared: &'a Shared) -> Self {
        let free = shared.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = shared.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Self(shared)
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(origin: &Origin, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", origin.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    #[test]
    fn a_body_is_read_to_its_end_and_the_answer_has_the_size_of_the_path() {
        let origin = Origin::start(Duration::ZERO, 200).unwrap();
        for lines in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let mut stream = client(&origin, &http::post("/bytes/40000", lines));
            let rest = if lines.starts_with('C') { "12345" } else { "1\r\nx\r\n0\r\n\r\n" };
            stream.write_all(rest.as_bytes()).unwrap();
            let (head, body) = http::read_answer(&mut stream).unwrap();
            assert_eq!((head.status.as_u16(), body.len()), (200, 40_000));
        }
    }

    #[test]
    fn an_unfinished_body_holds_a_worker_and_an_end_gives_it_back() {
        let origin = Origin::start(Duration::ZERO, 200).unwrap();
        let post = http::post("/", "Content-Length: 5\r\n");
        let holders: Vec<_> = (0..SLOTS).map(|_| client(&origin, &post)).collect();
        while *origin.shared.free.lock().unwrap() > 0 {
            thread::yield_now();
        }
        let mut health = client(&origin, &http::get("/healthz"));
        http::expect_200(&mut health).unwrap();
        let mut waiting = client(&origin, &http::get("/"));
        drop(holders);
        http::expect_200(&mut waiting).unwrap();
    }
}
