//! The application behind the gateway, which the test plays.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use socket2::{Domain, Socket, Type};

use crate::wire::{BOUND, Message, Tape, Wire};

/// An upstream that runs a script on each connection, each in a separate thread.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    /// All bytes received so far, over all connections.
    tape: Tape,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

impl Upstream {
    /// Starts an upstream that runs `script` on every connection.
    pub(crate) fn script(script: impl Fn(Wire) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let this = Self {
            address: listener.local_addr().unwrap(),
            tape: Tape::default(),
            accepted: Arc::default(),
            open: Arc::default(),
            ended: Arc::default(),
        };
        let (tape, accepted) = (Arc::clone(&this.tape), Arc::clone(&this.accepted));
        let open = Arc::clone(&this.open);
        let (ended, script) = (Arc::clone(&this.ended), Arc::new(script));
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                accepted.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                let (script, wire) = (Arc::clone(&script), Wire::taped(stream, Arc::clone(&tape)));
                let open = Arc::clone(&open);
                std::thread::spawn(move || {
                    script(wire);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        this
    }

    /// Starts an upstream that responds to every request with the bytes that `answer` returns, on
    /// kept connections.
    pub(crate) fn app(answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::script(move |mut wire| {
            while let Ok(request) = wire.request() {
                if wire.try_send(answer(&request)).is_err() {
                    return;
                }
            }
        })
    }

    /// Starts an upstream that responds with `200` and the target of the request as the body.
    pub(crate) fn echo() -> Self {
        Self::app(|request| ok(request.target()))
    }

    /// Starts an upstream that reads one request, sends these bytes and closes.
    pub(crate) fn blurts(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::script(move |mut wire| {
            if wire.request().is_ok() {
                let _ = wire.try_send(&bytes);
            }
        })
    }

    /// Starts an upstream that reads exactly the head of each request and never responds.
    pub(crate) fn stalled() -> Self {
        let kept = Mutex::new(Vec::new());
        Self::script(move |mut wire| {
            if wire.head().is_ok() {
                kept.lock().unwrap().push(wire);
            }
        })
    }

    /// Starts an upstream that hands every request to the test, which answers it at any time. The
    /// upstream notices when a connection ends.
    pub(crate) fn by_hand() -> (Self, Calls) {
        Self::handing(|wire| drop(wire.stream.shutdown(Shutdown::Both)))
    }

    /// Starts an upstream like [`by_hand`](Self::by_hand), but one that continues to work when the
    /// gateway ends its side of a connection.
    pub(crate) fn by_hand_working_on() -> (Self, Calls) {
        Self::handing(|_| {})
    }

    /// Starts an upstream that hands every request to the test. `at_end` is called when the gateway
    /// ends its side of a connection.
    fn handing(at_end: fn(&Wire)) -> (Self, Calls) {
        let (tell, calls) = channel();
        let tell = Mutex::new(tell);
        let upstream = Self::script(move |mut wire| {
            let tell: Sender<Call> = tell.lock().unwrap().clone();
            let ended = Arc::new(AtomicBool::new(false));
            wire.stream.set_read_timeout(None).unwrap();
            while let Ok(request) = wire.request() {
                let stream = wire.stream.try_clone().unwrap();
                let call = Call { request, wire: Wire::new(stream), ended: Arc::clone(&ended) };
                call.wire.stream.set_read_timeout(None).unwrap();
                if tell.send(call).is_err() {
                    return;
                }
            }
            ended.store(true, Ordering::SeqCst);
            at_end(&wire);
        });
        (upstream, Calls(calls))
    }

    /// Returns the number of connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Returns the number of connections on which the script still runs.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Returns all bytes received so far, as Latin 1.
    pub(crate) fn received(&self) -> String {
        self.tape.lock().unwrap().iter().map(|byte| char::from(*byte)).collect()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

/// The requests that have reached an upstream [`by_hand`](Upstream::by_hand).
pub(crate) struct Calls(Receiver<Call>);

/// A request that waits for the test's answer.
pub(crate) struct Call {
    pub(crate) request: Message,
    wire: Wire,
    ended: Arc<AtomicBool>,
}

impl Calls {
    pub(crate) fn next(&self) -> Call {
        self.0.recv_timeout(BOUND).expect("a request reaches the upstream")
    }

    /// Returns a request that has arrived already, if there is one.
    pub(crate) fn by_now(&self) -> Option<Call> {
        self.0.try_recv().ok()
    }

    /// Returns whether no request has arrived so far. If a request has arrived, it is discarded.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_now().is_none()
    }
}

impl Call {
    pub(crate) fn target(&self) -> &str {
        self.request.target()
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.wire.send(bytes);
    }

    /// Sends bytes, or returns an error if the gateway has closed the connection.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.wire.try_send(bytes)
    }

    /// Responds with `200` and this body.
    pub(crate) fn answer(mut self, body: &str) {
        self.send(ok(body));
    }

    pub(crate) fn send_and_close(mut self, bytes: impl AsRef<[u8]>) {
        self.send(bytes);
        self.close();
    }

    /// Closes the connection that the request came on.
    pub(crate) fn close(self) {
        let _ = self.wire.stream.shutdown(Shutdown::Both);
    }

    /// Returns whether the gateway has closed the connection that the request came on.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}

/// Returns a complete response.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    with_fields("", body)
}

/// Returns a complete response with additional fields, each with its line end.
pub(crate) fn with_fields(fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Returns an address where connecting hangs, because its backlog is full and nothing accepts. Keep
/// the sockets for as long as it must hang.
pub(crate) fn deaf() -> (SocketAddr, Vec<Socket>) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap();
    let mut kept = vec![socket];
    for _ in 0..3 {
        let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        filler.set_nonblocking(true).unwrap();
        let _ = filler.connect(&address);
        kept.push(filler);
    }
    (address.as_socket().unwrap(), kept)
}

/// Returns an address on which nothing listens.
pub(crate) fn nobody() -> SocketAddr {
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = bound.local_addr().unwrap().as_socket().unwrap();
    // The address stays bound until the process ends, so that no other test listens on it.
    std::mem::forget(bound);
    address
}
