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
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::conversation::Backend;
use crate::network::keep_alive;
use crate::numbers::{Numbers, UPSTREAM};
use crate::peer::Peer;
use crate::responder::Responder;

/// The time limit for a connection to the other daemon.
const LIMIT: Duration = Duration::from_secs(3);
/// The time for which clients are turned away after a failed connection. Otherwise each client
/// would wait for the limit.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum length of a response, in bytes.
const LONGEST_RESPONSE: u64 = 4096;

/// The connection settings for the other daemon.
pub(crate) struct Relay {
    host: String,
    port: u16,
    connector: Connector,
    numbers: Rc<Numbers>,
    /// The time of the next attempt to connect. `None` if the last attempt succeeded.
    retry_at: Cell<Option<Instant>>,
}

/// A client of the relay, and its connection to the other daemon. The connection ends when the
/// value is dropped: first the side that sends, and soon after it the side that receives.
pub(crate) struct RelayClient {
    numbers: Rc<Numbers>,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    ended: watch::Receiver<()>,
}

impl Relay {
    pub(crate) fn new(host: String, port: u16, connector: Connector, numbers: Rc<Numbers>) -> Self {
        Self { host, port, connector, numbers, retry_at: Cell::new(None) }
    }

    pub(crate) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Returns the address of the other daemon.
    pub(crate) fn upstream(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Connects a new client to the other daemon. Returns `None` if that daemon cannot be reached,
    /// or could not be reached a moment ago.
    pub(crate) async fn connect(self: &Rc<Self>, responder: &Responder) -> Option<RelayClient> {
        let now = Instant::now();
        match self.retry_at.get() {
            Some(at) if now < at => return None,
            // While this client connects, others are turned away.
            Some(_) => self.retry_at.set(Some(now + LIMIT + PAUSE)),
            None => {}
        }
        let opening = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            keep_alive(&stream);
            self.connector.connect(&self.host, stream).await
        };
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within 3 s"));
        match tokio::time::timeout(LIMIT, opening).await.unwrap_or_else(late) {
            Ok(stream) => {
                self.retry_at.set(None);
                self.numbers.connected(UPSTREAM, true, None);
                Some(self.start(stream, responder.clone()))
            }
            Err(error) => {
                self.retry_at.set(Some(Instant::now() + PAUSE));
                self.complain(&error);
                None
            }
        }
    }

    fn complain(&self, error: &io::Error) {
        let advice = bywash_tls::advice(error).map(|advice| format!(": {advice}"));
        let text = format!("{}: {error}{}", self.upstream(), advice.unwrap_or_default());
        self.numbers.connected(UPSTREAM, false, Some(text));
    }

    fn start(
        self: &Rc<Self>,
        stream: impl AsyncRead + AsyncWrite + 'static,
        responder: Responder,
    ) -> RelayClient {
        let (reader, writer) = tokio::io::split(stream);
        let (lines, queue) = mpsc::unbounded_channel();
        let (alive, ended) = watch::channel(());
        let relay = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let mut writing = JoinSet::new();
            writing.spawn_local(write_lines(writer, queue));
            // In TLS 1.3, the first read also says that the certificate was rejected.
            if let Err(error) = read_responses(reader, &responder).await {
                relay.complain(&error);
            }
            drop((responder, alive));
        });
        RelayClient { numbers: Rc::clone(&self.numbers), lines, ended }
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
            self.numbers.refuse(refusal);
            return responder.refuse(number, refusal, why);
        }
        let mut line = line.to_vec();
        line.push(b'\n');
        // An error means that the connection has ended, which `ended` reports as well.
        let _ = self.lines.send(line);
    }

    async fn ended(&self) {
        // The sender never sends: the only change is its end.
        let _ = self.ended.clone().changed().await;
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

/// Passes on responses until the other daemon ends the connection.
async fn read_responses(reader: impl AsyncRead + Unpin, responder: &Responder) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(LONGEST_RESPONSE).read_until(b'\n', &mut line).await?;
        match String::from_utf8(line) {
            Ok(line) if line.ends_with('\n') => responder.send_line(line),
            Ok(line) if line.is_empty() => return Ok(()),
            _ => {
                let why = "it does not answer like a stop daemon";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
    }
}
