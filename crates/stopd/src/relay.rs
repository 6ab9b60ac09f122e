//! Forwards the messages of this machine's programs to the daemon of another machine.
//!
//! Each client has a connection of its own to the other daemon, so its leases end with it. The
//! relay checks the rights of the client's user, because the other daemon knows only the
//! certificate of the relay.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bywash_lease::{Message, Refusal};
use bywash_tls::Connector;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::conversation::Backend;
use crate::network::{check_protocol, keep_alive};
use crate::numbers::{Numbers, UPSTREAM};
use crate::peer::{Peer, Rights};
use crate::responder::Responder;

/// The time limit for a connection to the other daemon.
const LIMIT: Duration = Duration::from_secs(3);
/// The time for which clients are refused after a failed connection. Otherwise each client would
/// wait for the limit.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of connections that are being opened. Further clients wait for their turn.
/// The other daemon accepts more handshakes at once from one address.
const OPENING: usize = 16;
/// The pause between two probes while the other daemon does not answer.
const PROBE: Duration = Duration::from_secs(5);
/// The time in which the other daemon rejects a certificate after the handshake. In TLS 1.3, the
/// handshake of the client is over before that.
const VERDICT: Duration = Duration::from_secs(1);
/// The maximum length of a response, in bytes.
const LONGEST_RESPONSE: u64 = 4096;

/// The connection settings for the other daemon, and its state.
pub(crate) struct Relay {
    pub(crate) numbers: Numbers,
    host: String,
    port: u16,
    connector: Connector,
    opening: Semaphore,
    /// The time of the next attempt to connect, after a failure. `None` while the other daemon
    /// answers.
    retry_at: Cell<Option<Instant>>,
    /// The number of connections on which the other daemon has answered. The failure of an older
    /// connection says nothing about the present state.
    successes: Cell<u64>,
}

/// A client of the relay. Dropping it ends the sending direction of its connection to the other
/// daemon, which then closes the connection.
pub(crate) struct RelayClient {
    relay: Rc<Relay>,
    /// The queue of lines to the other daemon. `None` if the client may send nothing.
    lines: Option<mpsc::UnboundedSender<Vec<u8>>>,
}

impl Relay {
    pub(crate) fn new(host: String, port: u16, connector: Connector) -> Self {
        Self {
            numbers: Numbers::new(),
            host,
            port,
            connector,
            opening: Semaphore::new(OPENING),
            retry_at: Cell::new(None),
            successes: Cell::new(0),
        }
    }

    /// Returns the address of the other daemon.
    pub(crate) fn upstream(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Connects a new client to the other daemon. Returns `None` if that daemon cannot be reached,
    /// or could not be reached a moment ago. A client without rights gets no connection: the relay
    /// refuses its messages itself.
    pub(crate) async fn connect(
        self: &Rc<Self>,
        peer: &Peer,
        responder: &Responder,
    ) -> Option<RelayClient> {
        let relay = Rc::clone(self);
        if peer.rights == Rights::NONE {
            return Some(RelayClient { relay, lines: None });
        }
        let now = Instant::now();
        match self.retry_at.get() {
            Some(at) if now < at => return None,
            // While this client connects, others are refused.
            Some(_) => self.retry_at.set(Some(now + LIMIT + PAUSE)),
            None => {}
        }
        let before = self.successes.get();
        let stream = self.open().await?;
        Some(RelayClient { relay, lines: Some(self.start(before, stream, responder.clone())) })
    }

    /// Opens a connection. In TLS 1.3, the other daemon may still reject the certificate after that.
    async fn open(&self) -> Option<impl AsyncRead + AsyncWrite + use<>> {
        let before = self.successes.get();
        let opening = async {
            let _turn = self.opening.acquire().await.expect("the semaphore is never closed");
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            keep_alive(&stream);
            let stream = self.connector.connect(&self.host, stream).await?;
            check_protocol(&stream)?;
            Ok(stream)
        };
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within 3 s"));
        match tokio::time::timeout(LIMIT, opening).await.unwrap_or_else(late) {
            Ok(stream) => Some(stream),
            Err(error) => {
                self.note_failure(before, &error);
                None
            }
        }
    }

    fn note_success(&self) {
        self.retry_at.set(None);
        self.successes.set(self.successes.get() + 1);
        self.numbers.connected(UPSTREAM, true, None);
    }

    /// Records the failure of a connection, unless another one has succeeded since it was opened.
    /// `before` is the number of successes at that time.
    fn note_failure(&self, before: u64, error: &io::Error) {
        if self.successes.get() == before {
            self.retry_at.set(Some(Instant::now() + PAUSE));
            let text = format!("{}: {error}", self.upstream());
            self.numbers.connected(UPSTREAM, false, Some(text));
        }
    }

    /// Connects once at the start, and again while the other daemon does not answer, forever. So
    /// the status is right before the first client comes.
    pub(crate) async fn probe(self: Rc<Self>) {
        let mut is_first = true;
        loop {
            let before = self.successes.get();
            if (is_first || self.retry_at.get().is_some())
                && let Some(stream) = self.open().await
            {
                let mut stream = std::pin::pin!(stream);
                match tokio::time::timeout(VERDICT, stream.read_u8()).await {
                    Ok(Err(error)) => self.note_failure(before, &error),
                    // A client may have had a later answer or failure.
                    _ if self.successes.get() != before => {}
                    Ok(Ok(_)) | Err(_) => self.note_success(),
                }
            }
            is_first = false;
            tokio::time::sleep(PROBE).await;
        }
    }

    /// Starts the exchange of lines with the other daemon. Returns the queue of lines to it, which
    /// is closed when the connection ends.
    fn start(
        self: &Rc<Self>,
        before: u64,
        stream: impl AsyncRead + AsyncWrite + 'static,
        responder: Responder,
    ) -> mpsc::UnboundedSender<Vec<u8>> {
        let (reader, writer) = tokio::io::split(stream);
        let (lines, queue) = mpsc::unbounded_channel();
        let relay = Rc::clone(self);
        tokio::task::spawn_local(async move {
            // The end of this task ends the writing as well.
            let mut writing = JoinSet::new();
            writing.spawn_local(write_lines(writer, queue));
            relay.pass_responses(before, reader, &responder).await;
        });
        lines
    }

    /// Passes on responses until the other daemon ends the connection.
    async fn pass_responses(
        &self,
        mut before: u64,
        reader: impl AsyncRead + Unpin,
        responder: &Responder,
    ) {
        let mut reader = BufReader::new(reader);
        let mut has_answered = false;
        loop {
            match read_response(&mut reader).await {
                Ok(Some(line)) => responder.send_line(line),
                Ok(None) => return,
                Err(error) => return self.note_failure(before, &error),
            }
            if !has_answered {
                has_answered = true;
                self.note_success();
                before = self.successes.get();
            }
        }
    }
}

impl Backend for RelayClient {
    /// The limit also bounds the messages in memory while the other daemon reads none.
    const MAX_OUTSTANDING: usize = 1024;

    fn handle(&self, peer: &Peer, line: &[u8], responder: &Responder) {
        let refused = match Message::parse(line) {
            Ok(message) => match peer.check(&message.command) {
                Ok(()) => None,
                Err((refusal, why)) => Some((message.number, refusal, why)),
            },
            Err(wrong) => Some((wrong.number, Refusal::Malformed, wrong.why)),
        };
        if let Some((number, refusal, why)) = refused {
            self.relay.numbers.refuse(refusal);
            responder.refuse(number, refusal, why);
        } else if let Some(lines) = &self.lines {
            let mut line = line.to_vec();
            line.push(b'\n');
            // An error means that the connection has ended, which `ended` reports as well.
            let _ = lines.send(line);
        }
    }

    async fn ended(&self) {
        match &self.lines {
            Some(lines) => lines.closed().await,
            None => std::future::pending().await,
        }
    }
}

/// Writes lines until there are no more. Then ends the sending side, so that the other daemon
/// answers what it has received and closes the connection.
async fn write_lines(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(mut bytes) = queue.recv().await {
        while let Ok(more) = queue.try_recv() {
            bytes.extend(more);
        }
        writer.write_all(&bytes).await?;
        writer.flush().await?;
    }
    writer.shutdown().await
}

/// Reads a response with its end. Returns `None` at the end of the connection.
async fn read_response(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    reader.take(LONGEST_RESPONSE).read_until(b'\n', &mut line).await?;
    match String::from_utf8(line) {
        Ok(line) if line.ends_with('\n') => Ok(Some(line)),
        Ok(line) if line.is_empty() => Ok(None),
        _ => {
            let why = "it does not answer like a stop daemon";
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        }
    }
}
