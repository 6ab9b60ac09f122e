//! An HTTP/2 client on the `h2` library, and one that sends frames that no honest client sends.
//!
//! The connections of all tests live in one runtime on a separate thread, so that they continue
//! while a test does something else.

use std::future::poll_fn;
use std::io::Write;
use std::net::{SocketAddr, TcpStream as StdStream};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, Request, StatusCode};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::wire::BOUND;

/// The client's end of a connection.
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    connection: JoinHandle<()>,
    /// Receives the result of the connection when it ends.
    end: Receiver<Result<(), h2::Error>>,
}

/// A request that was sent, and its response.
pub(crate) struct Asked {
    response: ResponseFuture,
    body: SendStream<Bytes>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

/// Returns the runtime in which the connections live.
pub(crate) fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    })
}

/// Waits for the result of `future`. Panics with `what` if there is no result in time.
pub(crate) fn wait<T>(what: &str, future: impl Future<Output = T>) -> T {
    let bounded = async { tokio::time::timeout(BOUND, future).await };
    runtime().block_on(bounded).unwrap_or_else(|_| panic!("this never came about: {what}"))
}

impl Http2 {
    /// Connects over TCP, with prior knowledge.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, &Builder::new())
    }

    pub(crate) fn connect_with(address: SocketAddr, builder: &Builder) -> Self {
        let stream = wait("a connection", TcpStream::connect(address)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over_with(stream, builder)
    }

    pub(crate) fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        Self::over_with(stream, &Builder::new())
    }

    fn over_with(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        builder: &Builder,
    ) -> Self {
        let (sender, connection) = wait("a handshake", builder.handshake(stream)).unwrap();
        let (tell, end) = channel();
        let connection = runtime().spawn(async move {
            let _ = tell.send(connection.await);
        });
        Self { sender, connection, end }
    }

    /// Sends a GET.
    pub(crate) fn asks(&mut self, target: &str) -> Asked {
        self.sends(get(target), true)
    }

    /// Returns the answer to a GET.
    pub(crate) fn get(&mut self, target: &str) -> Answer {
        self.asks(target).answer().expect("a whole answer")
    }

    /// Sends a request; its body follows if it does not end with the head.
    pub(crate) fn sends(&mut self, request: Request<()>, ends: bool) -> Asked {
        let ready = self.sender.clone().ready();
        self.sender = wait("room for a stream", ready).expect("the connection takes streams");
        let (response, body) = self.sender.send_request(request, ends).unwrap();
        Asked { response, body }
    }

    /// Sends a request without waiting until the gateway accepts another stream.
    pub(crate) fn sends_at_once(&mut self, request: Request<()>, ends: bool) -> Asked {
        let (response, body) = self.sender.clone().send_request(request, ends).unwrap();
        Asked { response, body }
    }

    /// Returns whether the gateway accepts no further streams.
    pub(crate) fn takes_no_more(&mut self) -> bool {
        wait("an answer", self.sender.clone().ready()).is_err()
    }

    /// Waits for the end of the connection, and returns its result.
    pub(crate) fn ended(&self) -> Result<(), h2::Error> {
        self.end.recv_timeout(BOUND).expect("the connection ends")
    }

    /// Leaves without closing the HTTP/2 connection properly.
    pub(crate) fn leaves(self) {
        self.connection.abort();
    }
}

impl Asked {
    /// Sends a piece of the body.
    pub(crate) fn data(&mut self, data: impl Into<Bytes>, ends: bool) {
        self.body.send_data(data.into(), ends).unwrap();
    }

    /// Sends fields after the body.
    pub(crate) fn trailers(&mut self, fields: &[(&'static str, &str)]) {
        self.body.send_trailers(map(fields)).unwrap();
    }

    pub(crate) fn reset(&mut self) {
        self.body.send_reset(Reason::CANCEL);
    }

    /// Returns the next interim answer. Returns `None` if the final one comes first.
    pub(crate) fn interim(&mut self) -> Option<(StatusCode, HeaderMap)> {
        let interim = poll_fn(|cx| self.response.poll_informational(cx));
        let response = wait("an interim answer", interim)?.unwrap();
        Some((response.status(), response.headers().clone()))
    }

    /// Returns the complete answer, or the error because of which it is incomplete.
    pub(crate) fn answer(self) -> Result<Answer, h2::Error> {
        let Self { response, body: _held } = self;
        wait("an answer", async {
            let (parts, mut body) = response.await?.into_parts();
            let mut all = Vec::new();
            while let Some(data) = body.data().await {
                let data = data?;
                body.flow_control().release_capacity(data.len())?;
                all.extend_from_slice(&data);
            }
            let trailers = body.trailers().await?;
            let (status, fields) = (parts.status, parts.headers);
            Ok(Answer { status, fields, body: all, trailers })
        })
    }
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Returns a GET as clients send it.
pub(crate) fn get(target: &str) -> Request<()> {
    request("GET", target, &[])
}

pub(crate) fn request(method: &str, target: &str, fields: &[(&'static str, &str)]) -> Request<()> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("http://shop.example{target}"))
        .body(())
        .unwrap();
    *request.headers_mut() = map(fields);
    request
}

fn map(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(*name, value.parse().unwrap());
    }
    map
}

/// A connection with hand-made frames.
pub(crate) struct Frames(pub(crate) StdStream);

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// One frame.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frames {
    /// Connects and sends the preface with empty settings.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(StdStream::connect(address).unwrap())
    }

    /// Connects with a receive buffer that holds only a little unread data.
    pub(crate) fn narrow(address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(32 * 1024).unwrap();
        socket.connect(&address.into()).unwrap();
        Self::over(socket.into())
    }

    fn over(stream: StdStream) -> Self {
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let mut this = Self(stream);
        this.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        this.send(SETTINGS, 0, 0, b"");
        this
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.0.write_all(&frame(kind, flags, stream, payload)).unwrap();
    }

    /// Sends a frame. Ignores an error, because the connection may have ended.
    pub(crate) fn tries(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let _ = self.0.write_all(&frame(kind, flags, stream, payload));
    }

    /// Returns the next frame that does not concern the connection itself (settings, pings,
    /// windows).
    pub(crate) fn next(&mut self) -> Option<Frame> {
        use std::io::Read;
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let (kind, flags) = (head[3], head[4]);
            if kind == PING && flags == 0 {
                self.tries(PING, 1, 0, &payload);
            }
            if ![SETTINGS, PING, WINDOW_UPDATE].contains(&kind) {
                return Some(Frame { kind, stream, payload });
            }
        }
    }
}

impl Frame {
    /// Returns the status of a HEADERS frame, which the gateway's library indexes or spells out.
    pub(crate) fn status(&self) -> Option<u16> {
        let known = [200, 204, 206, 304, 400, 404, 500];
        match self.payload.as_slice() {
            [indexed @ 0x88..=0x8e, ..] => Some(known[usize::from(indexed - 0x88)]),
            _ => None,
        }
    }

    /// Returns the code of `RST_STREAM` or `GOAWAY`.
    pub(crate) fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        self.payload[at..at + 4].iter().fold(0, |code, byte| code << 8 | u32::from(*byte))
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes fields as HPACK literals, without any table.
pub(crate) fn literal(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("short texts only"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// The pseudo-fields of a GET.
pub(crate) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":authority", "shop.example"), (":path", "/")];
