//! One end of an HTTP/1.1 connection, driven by hand. The bytes sent are exactly those of the test,
//! and the bytes read are parsed only by the framing rules.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

/// The maximum time to wait for anything. It is far longer than needed, so that only a fault
/// exceeds it.
pub(crate) const BOUND: Duration = Duration::from_secs(10);

/// All bytes that one side has received, in the order of their arrival.
pub(crate) type Tape = Arc<Mutex<Vec<u8>>>;

pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
    tape: Option<Tape>,
}

/// A request or a response. Bytes outside ASCII are shown as the characters of Latin 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    /// The request line or the status line.
    pub(crate) start: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Vec<u8>,
    /// The trailer fields of a chunked body.
    pub(crate) trailers: Vec<Field>,
}

/// A field: its name and its value.
pub(crate) type Field = (String, String);

/// The reason why there is no complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The connection ended between two messages.
    Closed,
    /// The connection ended in the middle of a message.
    Cut,
    /// No bytes arrived in time.
    Silent,
    /// The bytes are not HTTP.
    Garbage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    Request,
    Answer,
    AnswerToHead,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect_timeout(&address, BOUND).expect("the listener accepts"))
    }

    /// Connects from the address 127.0.0.`source`.
    pub(crate) fn connect_from(source: u8, address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, source], 0)).into()).unwrap();
        socket.connect(&address.into()).expect("the listener accepts");
        Self::new(socket.into())
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.set_write_timeout(Some(BOUND)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, read: Vec::new(), tape: None }
    }

    /// Records everything that is read on `tape`.
    pub(crate) fn taped(stream: TcpStream, tape: Tape) -> Self {
        Self { tape: Some(tape), ..Self::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the other side still reads");
    }

    /// Sends bytes, or returns an error if the other side has closed the connection.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    pub(crate) fn request(&mut self) -> Result<Message, Broken> {
        self.message(MessageKind::Request)
    }

    pub(crate) fn answer(&mut self) -> Result<Message, Broken> {
        self.message(MessageKind::Answer)
    }

    pub(crate) fn answer_to_head(&mut self) -> Result<Message, Broken> {
        self.message(MessageKind::AnswerToHead)
    }

    /// Reads one head. The body stays unread.
    pub(crate) fn head(&mut self) -> Result<Message, Broken> {
        while let Some(end) = self.read.strip_prefix(b"\r\n").map(<[u8]>::len) {
            self.read.drain(..self.read.len() - end);
        }
        let end = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at;
            }
            let begun = !self.read.is_empty();
            self.fill().map_err(|broken| match broken {
                Broken::Closed if begun => Broken::Cut,
                other => other,
            })?;
        };
        let head: Vec<u8> = self.read.drain(..end + 4).collect();
        let text: String = head[..end].iter().map(|byte| char::from(*byte)).collect();
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let fields = lines.map(field).collect::<Option<_>>().ok_or(Broken::Garbage)?;
        Ok(Message { start, fields, body: Vec::new(), trailers: Vec::new() })
    }

    /// Returns whether the other side ends the connection without sending anything more.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.read.is_empty() && matches!(self.fill(), Err(Broken::Closed | Broken::Cut))
    }

    /// Returns whether nothing has arrived so far.
    pub(crate) fn has_nothing_to_read(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let nothing = self.read.is_empty() && self.fill() == Err(Broken::Silent);
        self.stream.set_nonblocking(false).unwrap();
        nothing
    }

    /// Returns all bytes until the other side ends the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill().is_ok() {}
        std::mem::take(&mut self.read)
    }

    /// Reads `count` bytes of a body.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<Vec<u8>, Broken> {
        while self.read.len() < count {
            self.fill().map_err(in_the_middle)?;
        }
        Ok(self.read.drain(..count).collect())
    }

    /// Takes the bytes that were read and belong to no message yet.
    pub(crate) fn buffered(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.read)
    }

    /// Closes the connection with a reset instead of a FIN.
    pub(crate) fn reset(self) {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Ends only the sending side.
    pub(crate) fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    fn message(&mut self, kind: MessageKind) -> Result<Message, Broken> {
        let mut message = self.head()?;
        if kind == MessageKind::AnswerToHead
            || matches!(message.status(), Some(204 | 304 | 100..=199))
        {
            return Ok(message);
        }
        if message.field("transfer-encoding").is_some() {
            (message.body, message.trailers) = self.chunks()?;
        } else if let Some(length) = message.field("content-length") {
            message.body = self.bytes(length.parse().map_err(|_| Broken::Garbage)?)?;
        } else if kind == MessageKind::Answer {
            message.body = self.until_closed()?;
        }
        Ok(message)
    }

    fn until_closed(&mut self) -> Result<Vec<u8>, Broken> {
        loop {
            match self.fill() {
                Ok(()) => {}
                Err(Broken::Closed) => return Ok(std::mem::take(&mut self.read)),
                Err(broken) => return Err(broken),
            }
        }
    }

    fn chunks(&mut self) -> Result<(Vec<u8>, Vec<Field>), Broken> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(|_| Broken::Garbage)?;
            if size == 0 {
                break;
            }
            body.extend(self.bytes(size)?);
            if self.bytes(2)? != b"\r\n" {
                return Err(Broken::Garbage);
            }
        }
        let mut trailers = Vec::new();
        loop {
            match self.line()?.as_str() {
                "" => return Ok((body, trailers)),
                line => trailers.push(field(line).ok_or(Broken::Garbage)?),
            }
        }
    }

    /// Reads one line of chunked framing.
    pub(crate) fn line(&mut self) -> Result<String, Broken> {
        loop {
            if let Some(end) = find(&self.read, b"\r\n") {
                let line: Vec<u8> = self.read.drain(..end + 2).collect();
                return Ok(line[..end].iter().map(|byte| char::from(*byte)).collect());
            }
            self.fill().map_err(in_the_middle)?;
        }
    }

    /// Reads once from the socket into the buffer.
    fn fill(&mut self) -> Result<(), Broken> {
        let mut some = [0; 16 * 1024];
        match self.stream.read(&mut some) {
            Ok(0) => Err(Broken::Closed),
            Ok(count) => {
                self.read.extend(&some[..count]);
                if let Some(tape) = &self.tape {
                    tape.lock().unwrap().extend(&some[..count]);
                }
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Broken::Silent),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(_) => Err(Broken::Cut),
        }
    }
}

impl Message {
    /// Returns the status code. Returns `None` for a request.
    pub(crate) fn status(&self) -> Option<u16> {
        self.start.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()
    }

    /// Returns the target of the request line.
    pub(crate) fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the value of the first field with this name, if any.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// Returns the values of all fields with this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn in_the_middle(broken: Broken) -> Broken {
    if broken == Broken::Closed { Broken::Cut } else { broken }
}

fn field(line: &str) -> Option<Field> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_owned(), value.trim().to_owned()))
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
