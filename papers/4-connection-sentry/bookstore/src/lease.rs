//! The store's client of the stop daemon, which tells the daemon which request uses which
//! connection.
//!
//! A message is one line over a Unix socket. Each message has a number, which its answer repeats.
//! `crates/lease` defines the whole protocol, and `sdk/README.md` has the rules for its clients.
//!
//! ```text
//! 7 LEASE 5f1c9a7e00000d42 shop 4711        7 OK | 7 STOPPED client_left | 7 ERR …
//! 8 RELEASE 5f1c9a7e00000d42 shop 4711      8 OK | 8 ERR not_leased … | 8 ERR …
//!                                           0 STOPPED 5f1c9a7e00000d42 client_left 4711
//! ```
//!
//! A connection serves the next request only if its release was answered with OK or with
//! `not_leased`. With these answers, the daemon has no cancellation of the connection under way.
//! Otherwise the connection is closed. A message that is not answered in time ends the conversation
//! and all its leases, and their connections are closed. Without a daemon the store works normally.
//!
//! The workers write to the socket, one at a time, and each waits for its answer on its own
//! channel. One thread reads the answers. The lock protects the writing end and the tables
//! `waiting` and `stops`. It is held at most for the write of one short line, which has a time
//! limit.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bywash_lease::{Answer, Command, DatabaseName, Message, Refusal, RequestId};
use socket2::{Domain, SockAddr, Socket, Type};

use bywash_database::DbError;

/// The maximum time to wait for an answer of the daemon.
const ANSWER: Duration = Duration::from_millis(100);

/// The minimum time between two attempts to connect to an absent daemon.
const AGAIN: Duration = Duration::from_millis(200);

/// A client of the stop daemon for one database. All workers share it.
#[derive(Clone)]
pub(crate) struct LeaseClient {
    shared: Arc<Shared>,
    database: DatabaseName,
}

/// The connection to the daemon, which is opened again whenever it breaks. Dropping this value ends
/// the reading thread.
pub(crate) struct DaemonConnection {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    socket: PathBuf,
    is_over: AtomicBool,
    /// The total number of conversations begun. Statistics read it without the lock.
    begun: Arc<AtomicU64>,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    /// The writing end; `None` while there is no connection to the daemon.
    writer: Option<UnixStream>,
    /// The number of the current conversation. A lease ends with the conversation in which it was
    /// made.
    conversation: u64,
    /// The number of the last message sent.
    last: u64,
    /// The channels of the workers that wait for an answer, indexed by the number of the message.
    waiting: HashMap<u64, SyncSender<Answer>>,
    /// The flags that stop the running statements of leased connections, indexed by request and
    /// connection.
    stops: HashMap<(RequestId, u64), Arc<AtomicBool>>,
}

/// The reason why a message has no answer.
enum NoAnswer {
    /// The message was certainly not sent.
    NotSent,
    /// The message may have been sent, but was not answered in time.
    MaybeSent,
}

/// A lease: the promise to the daemon that a connection works for one request until
/// [`Lease::release`].
#[must_use = "a lease ends with its release"]
pub(crate) struct Lease<'a> {
    client: &'a LeaseClient,
    request: &'a RequestId,
    connection: u64,
    /// The number of the conversation in which the daemon granted the lease or may have granted it;
    /// `None` if the daemon granted none.
    announced_in: Option<u64>,
}

impl DaemonConnection {
    /// Starts the thread that connects to the daemon at `socket`. The daemon may start later.
    pub(crate) fn new(socket: PathBuf) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            socket,
            is_over: AtomicBool::new(false),
            begun: Arc::default(),
            state: Mutex::default(),
        });
        let reading = Arc::clone(&shared);
        let reader = thread::Builder::new().name("bookstore-lease".to_owned());
        let reader = reader.spawn(move || reading.read())?;
        Ok(Self { shared, reader: Some(reader) })
    }

    /// Returns the counter of the conversations begun with the daemon.
    pub(crate) fn begun(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared.begun)
    }

    /// Returns a client for the workers. `database` is the name under which the daemon knows their
    /// database.
    pub(crate) fn client(&self, database: DatabaseName) -> LeaseClient {
        LeaseClient { shared: Arc::clone(&self.shared), database }
    }
}

impl Drop for DaemonConnection {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        let mut state = self.shared.lock();
        let conversation = state.conversation;
        state.end(conversation);
        drop(state);
        if let Some(reader) = self.reader.take() {
            reader.thread().unpark();
            let _ = reader.join();
        }
    }
}

impl LeaseClient {
    /// Tells the daemon that `connection` works for `request` from now on. `stop` is set to true if
    /// the daemon stops the request before the lease ends.
    ///
    /// # Errors
    ///
    /// Returns `Cancelled` if the request must not be served, and `Taken` if the connection must
    /// not be used.
    pub(crate) fn lease<'a>(
        &'a self,
        request: &'a RequestId,
        connection: u64,
        stop: Option<Arc<AtomicBool>>,
    ) -> Result<Lease<'a>, DbError> {
        let mut lease = Lease { client: self, request, connection, announced_in: None };
        if let Some(stop) = stop {
            self.shared.lock().stops.insert(lease.key(), stop);
        }
        let command = Command::Lease {
            request: request.clone(),
            database: self.database.clone(),
            connection,
            not_after: None,
        };
        let (conversation, answer) = self.shared.exchange(command, None);
        let error = match answer {
            Ok(Answer::Done) | Err(NoAnswer::MaybeSent) => {
                lease.announced_in = Some(conversation);
                return Ok(lease);
            }
            Ok(Answer::Stopped(_)) => DbError::Cancelled,
            Ok(Answer::Refused(Refusal::Taken, _)) => DbError::Taken,
            Ok(Answer::Refused(..) | Answer::Cancelled { .. } | Answer::StopWork { .. })
            | Err(NoAnswer::NotSent) => return Ok(lease),
        };
        lease.forget();
        Err(error)
    }
}

impl Lease<'_> {
    /// Ends the lease. Returns whether the connection may serve another request; if not, the caller
    /// must close it.
    pub(crate) fn release(self) -> bool {
        self.forget();
        let Some(announced_in) = self.announced_in else { return true };
        let command = Command::Release {
            request: self.request.clone(),
            database: self.client.database.clone(),
            connection: self.connection,
        };
        let (_, answer) = self.client.shared.exchange(command, Some(announced_in));
        matches!(answer, Ok(Answer::Done | Answer::Refused(Refusal::NotLeased, _)))
    }

    fn forget(&self) {
        self.client.shared.lock().stops.remove(&self.key());
    }

    fn key(&self) -> (RequestId, u64) {
        (self.request.clone(), self.connection)
    }
}

impl Shared {
    /// Locks the state. A poisoned lock is accepted, because every change under the lock is
    /// complete in one step.
    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message in the current conversation, and waits for its answer. If `wanted` is the
    /// number of another conversation, sends nothing. Returns the number of the current
    /// conversation, and the answer. A missing answer ends the conversation.
    fn exchange(&self, command: Command, wanted: Option<u64>) -> (u64, Result<Answer, NoAnswer>) {
        let mut state = self.lock();
        let conversation = state.conversation;
        let is_other = wanted.is_some_and(|wanted| wanted != conversation);
        let sent = if is_other { Err(NoAnswer::NotSent) } else { state.send(command) };
        drop(state);
        let heard =
            sent.and_then(|answer| answer.recv_timeout(ANSWER).map_err(|_| NoAnswer::MaybeSent));
        if matches!(heard, Err(NoAnswer::MaybeSent)) {
            self.lock().end(conversation);
        }
        (conversation, heard)
    }

    fn read(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            if let Ok(stream) = self.connect() {
                let mut lines = BufReader::new(stream).lines();
                while let Some(Ok(line)) = lines.next() {
                    self.receive(&line);
                }
            }
            let mut state = self.lock();
            let conversation = state.conversation;
            state.end(conversation);
            drop(state);
            if !self.is_over.load(Ordering::Acquire) {
                thread::park_timeout(AGAIN);
            }
        }
    }

    fn connect(&self) -> std::io::Result<UnixStream> {
        // The time limit also applies to connecting, which blocks if the daemon does not accept and
        // its backlog is full.
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_write_timeout(Some(ANSWER))?;
        socket.connect(&SockAddr::unix(&self.socket)?)?;
        let stream = UnixStream::from(OwnedFd::from(socket));
        let writer = stream.try_clone()?;
        let mut state = self.lock();
        if self.is_over.load(Ordering::Acquire) {
            return Err(std::io::Error::other("over"));
        }
        state.writer = Some(writer);
        state.conversation += 1;
        self.begun.store(state.conversation, Ordering::Relaxed);
        Ok(stream)
    }

    /// Handles one line from the daemon. A line that cannot be parsed is ignored.
    fn receive(&self, text: &str) {
        let Ok((number, answer)) = Answer::parse(text) else { return };
        let mut state = self.lock();
        if let Answer::StopWork { request, .. } = &answer {
            for ((own, _), stop) in &state.stops {
                if own == request {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        } else if let Some(waiting) = state.waiting.remove(&number) {
            // If the worker no longer waits, its channel is closed and the answer is discarded.
            let _ = waiting.try_send(answer);
        }
    }
}

impl ConnectionState {
    fn send(&mut self, command: Command) -> Result<Receiver<Answer>, NoAnswer> {
        let writer = self.writer.as_mut().ok_or(NoAnswer::NotSent)?;
        self.last += 1;
        let text = format!("{}\n", Message { number: self.last, command });
        writer.write_all(text.as_bytes()).map_err(|_| NoAnswer::MaybeSent)?;
        let (heard, answer) = sync_channel(1);
        self.waiting.insert(self.last, heard);
        Ok(answer)
    }

    /// Ends the conversation with this number, unless another conversation has replaced it. Workers
    /// that wait for an answer wake up, because their senders are dropped.
    fn end(&mut self, conversation: u64) {
        if self.conversation == conversation {
            if let Some(writer) = self.writer.take() {
                // The shutdown makes the reading thread see the end of the stream. An error means
                // that the stream has already ended, which the thread has seen.
                let _ = writer.shutdown(Shutdown::Both);
            }
            self.waiting.clear();
        }
    }
}
