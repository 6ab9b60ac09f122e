//! The upstream of a measurement: one epoll thread that serves any number of connections. It
//! answers as its [`Behaviour`] says, and counts the requests that it receives.
//!
//! A request for `/hold` is never answered, whatever the behaviour.

mod behaviour;

use crate::http;
use crate::sys::{self, Epoll};
pub use behaviour::Behaviour;
use behaviour::Connection;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const LISTENER: usize = 0;
/// Interval in milliseconds at which the thread checks whether to stop or to change its behaviour.
const LOOK_MILLIS: i32 = 10;

/// A running upstream, which stops when the value is dropped.
#[derive(Debug)]
pub struct Upstream {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    behaviour: Mutex<Behaviour>,
    requests: AtomicU64,
}

impl Upstream {
    /// Starts an upstream that answers immediately. It listens on a free port and runs on the
    /// caller's core.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let behaviour = Mutex::new(Behaviour::Answer);
        let (stop, requests) = (AtomicBool::new(false), AtomicU64::new(0));
        let shared = Arc::new(Shared { stop, behaviour, requests });
        let thread_shared = Arc::clone(&shared);
        let thread = Some(thread::spawn(move || Server::open(listener, thread_shared)?.serve()));
        Ok(Self { port, shared, thread })
    }

    /// Returns the port that the upstream listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes the behaviour of the upstream. The new behaviour applies to every request that is
    /// not answered yet, even if the request was received before this call.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    /// Returns the number of complete requests, including their bodies, received since the start.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(Ok(Err(e))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("upstream: {e}");
        }
    }
}

/// The state of the upstream's thread.
struct Server {
    shared: Arc<Shared>,
    behaviour: Behaviour,
    port: u16,
    /// The listener; `None` while connections are refused.
    listener: Option<TcpListener>,
    epoll: Epoll,
    connections: HashMap<usize, Connection>,
    next: usize,
    /// The answers that are due later: the due time, and the token of the connection.
    working: BinaryHeap<Reverse<(Instant, usize)>>,
    answer: Vec<u8>,
    room: Vec<u8>,
}

impl Server {
    fn open(listener: TcpListener, shared: Arc<Shared>) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        let mut server = Self {
            shared,
            behaviour: Behaviour::Answer,
            port,
            listener: None,
            epoll: Epoll::new(256)?,
            connections: HashMap::new(),
            next: LISTENER + 1,
            working: BinaryHeap::new(),
            answer: http::ok(&"x".repeat(64)).into_bytes(),
            room: vec![0; 16384],
        };
        server.listen(listener)?;
        Ok(server)
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        sys::set_backlog(&listener, 4096)?;
        self.epoll.add(&listener, LISTENER)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut ready = Vec::new();
        while !self.shared.stop.load(Ordering::Relaxed) {
            match self.pause() {
                // The call `wait` needs one system call and `wait_for` needs two. The core of this
                // thread is also the load generator's, and is busy.
                None => self.epoll.wait(LOOK_MILLIS, &mut ready)?,
                Some(pause) => self.epoll.wait_for(pause, &mut ready)?,
            }
            self.apply_behaviour()?;
            for &token in &ready {
                if token == LISTENER {
                    self.accept()?;
                } else if self.on_ready(token).is_err() {
                    self.connections.remove(&token);
                }
            }
            self.finish_work();
        }
        Ok(())
    }

    /// Returns the time until the next answer is due; `None` if no answer is in progress.
    fn pause(&self) -> Option<Duration> {
        let Reverse((due, _)) = self.working.peek()?;
        let look = Duration::from_millis(LOOK_MILLIS as u64);
        Some(due.saturating_duration_since(Instant::now()).min(look))
    }

    fn apply_behaviour(&mut self) -> io::Result<()> {
        let behaviour = *self.shared.behaviour.lock().unwrap_or_else(PoisonError::into_inner);
        if behaviour == self.behaviour {
            return Ok(());
        }
        self.behaviour = behaviour;
        match behaviour {
            Behaviour::Crash => {
                for connection in self.connections.values() {
                    sys::reset_on_close(&connection.stream)?;
                }
                self.close();
            }
            Behaviour::Refuse => self.close(),
            Behaviour::Answer
            | Behaviour::After(_)
            | Behaviour::Hang
            | Behaviour::CutLength
            | Behaviour::CutChunked
            | Behaviour::Garbage
            | Behaviour::HalfClose => {
                if self.listener.is_none() {
                    self.listen(TcpListener::bind(("127.0.0.1", self.port))?)?;
                }
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.listener = None;
        self.connections.clear();
        self.working.clear();
    }

    fn accept(&mut self) -> io::Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.epoll.add(&stream, self.next)?;
            self.connections.insert(self.next, Connection::new(stream));
            self.next += 1;
        }
        Ok(())
    }

    /// Reads once from the connection `token` and handles the complete requests. An error means
    /// that the connection has ended.
    fn on_ready(&mut self, token: usize) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        connection.read(&mut self.room)?;
        while let Some(request) = connection.next_request()? {
            self.shared.requests.fetch_add(1, Ordering::Relaxed);
            match self.behaviour {
                _ if request.is_held => {}
                Behaviour::After(time) => {
                    self.working.push(Reverse((Instant::now() + time, token)));
                }
                behaviour => connection.reply(behaviour, &self.answer)?,
            }
        }
        Ok(())
    }

    fn finish_work(&mut self) {
        while let Some(&Reverse((due, token))) = self.working.peek() {
            if due > Instant::now() {
                return;
            }
            self.working.pop();
            if let Some(connection) = self.connections.get_mut(&token)
                && connection.reply(Behaviour::Answer, &self.answer).is_err()
            {
                self.connections.remove(&token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Write};
    use std::net::TcpStream;

    /// Sends `request` to the upstream and returns the body of the answer.
    fn ask(upstream: &Upstream, request: &str) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", upstream.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        http::read_answer(&mut stream).map(|(_, body)| body)
    }

    #[test]
    fn it_answers_and_counts_requests_with_and_without_bodies() {
        let upstream = Upstream::start().unwrap();
        let post = http::post("/", "Transfer-Encoding: chunked\r\n") + "1\r\nx\r\n0\r\n\r\n";
        for request in [http::get("/"), post] {
            assert_eq!(ask(&upstream, &request).unwrap(), [b'x'; 64]);
        }
        assert_eq!(upstream.requests(), 2);
    }

    #[test]
    fn each_behaviour_but_answering_leaves_the_answer_unfinished() {
        use Behaviour::{CutChunked, CutLength, Garbage, HalfClose};
        let upstream = Upstream::start().unwrap();
        for behaviour in [CutLength, CutChunked, HalfClose] {
            upstream.set_behaviour(behaviour);
            assert!(ask(&upstream, &http::get("/")).is_err(), "{behaviour:?}");
        }
        upstream.set_behaviour(Garbage);
        let garbage = ask(&upstream, &http::get("/")).unwrap_err();
        assert_eq!(garbage.kind(), ErrorKind::InvalidData);
        upstream.set_behaviour(Behaviour::After(Duration::from_millis(1)));
        assert!(ask(&upstream, &http::get("/")).is_ok());
    }

    #[test]
    fn a_crashed_upstream_refuses_until_it_is_back() {
        let upstream = Upstream::start().unwrap();
        let refuses = || TcpStream::connect(("127.0.0.1", upstream.port())).is_err();
        let wait = |what: &dyn Fn() -> bool| {
            let start = Instant::now();
            while !what() && start.elapsed() < Duration::from_secs(5) {
                thread::yield_now();
            }
            what()
        };
        upstream.set_behaviour(Behaviour::Crash);
        assert!(wait(&refuses));
        upstream.set_behaviour(Behaviour::Answer);
        assert!(wait(&|| !refuses()));
    }
}
