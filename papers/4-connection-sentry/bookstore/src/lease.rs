//! Telling the stop daemon which request uses which connection.
//!
//! One line a message over a socket of this machine, each with a number that its answer carries (`crates/lease` has
//! the whole language, `sdk/README.md` the rules of whoever speaks it):
//!
//! ```text
//! 7 LEASE 5f1c9a7e00000d42 shop 4711        7 OK | 7 STOPPED client_left | 7 ERR …
//! 8 RELEASE 5f1c9a7e00000d42 shop 4711      8 OK | 8 ERR not_leased … | 8 ERR …
//!                                           0 STOPPED 5f1c9a7e00000d42 client_left 4711
//! ```
//!
//! A connection is lent to the next request when its release was answered with OK, or with the word that it is not
//! leased: then nothing aimed at it is under way. Without that it is closed. A message that is not answered in time ends
//! the conversation, and with it all its leases: their connections are closed. Without a daemon the store works as ever.
//!
//! Threads: workers write, one after the other, and wait on a channel of their own; one thread reads. The lock is
//! around the writing end and the two tables, held for one write of one short line, which has a time limit.

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

use bywash_lease::{Answer, DatabaseName, Message, Order, Refusal, RequestId};
use socket2::{Domain, SockAddr, Socket, Type};

use bywash_database::DbError;

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_millis(100);

/// After which a daemon that was not there is looked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// The way to the daemon, shared by all workers.
#[derive(Clone)]
pub(crate) struct LeaseClient {
    shared: Arc<Shared>,
    database: DatabaseName,
}

/// Keeps the way open; dropped, it ends the reading thread.
pub(crate) struct DaemonConnection {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    socket: PathBuf,
    is_over: AtomicBool,
    /// How many conversations have begun, for who must not wait for the lock.
    begun: Arc<AtomicU64>,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    /// `None` while the daemon is not there.
    writer: Option<UnixStream>,
    /// The conversation, counted; a lease ends with its own.
    conversation: u64,
    last: u64,
    /// Who waits for an answer, by its number.
    waiting: HashMap<u64, SyncSender<Answer>>,
    /// What stops the statement of a connection of ours.
    stops: HashMap<(RequestId, u64), Arc<AtomicBool>>,
}

/// Why there is no answer.
enum NoAnswer {
    /// Nobody has heard the question.
    NotSent,
    /// Somebody may have.
    MaybeSent,
}

/// A connection that works for a request.
#[must_use = "a lease ends with its release"]
pub(crate) struct Lease<'a> {
    client: &'a LeaseClient,
    request: &'a RequestId,
    connection: u64,
    /// The conversation in which the daemon was told, if it was.
    announced_in: Option<u64>,
}

impl DaemonConnection {
    /// Looks for the daemon at `socket` from now on, whether it is there or not.
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

    /// How many conversations with the daemon have begun.
    pub(crate) fn begun(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared.begun)
    }

    /// For workers on a database that the daemon knows as `database`.
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
    /// From now on `connection` works for `request`; `Err(Cancelled)` if the request shall not be served, `Err(Taken)` if
    /// the connection shall not be used. `stop` is set if the daemon says so while it works.
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
        let order = Order::Lease {
            request: request.clone(),
            database: self.database.clone(),
            connection,
            not_after: None,
        };
        let (conversation, answer) = self.shared.exchange(order, None);
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
    /// It works for it no longer; whether it may be lent again.
    pub(crate) fn release(self) -> bool {
        self.forget();
        let Some(announced_in) = self.announced_in else { return true };
        let order = Order::Release {
            request: self.request.clone(),
            database: self.client.database.clone(),
            connection: self.connection,
        };
        let (_, answer) = self.client.shared.exchange(order, Some(announced_in));
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
    /// Poison is ignored: every change under the lock is a single step.
    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something in the conversation that there is, which must be the one that is `wanted`; gives its number and
    /// the answer.
    fn exchange(&self, order: Order, wanted: Option<u64>) -> (u64, Result<Answer, NoAnswer>) {
        let mut state = self.lock();
        let conversation = state.conversation;
        let is_other = wanted.is_some_and(|wanted| wanted != conversation);
        let sent = if is_other { Err(NoAnswer::NotSent) } else { state.send(order) };
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
        // The limit is also the connection's: a daemon that accepts nobody lets us stand in a line that can be full.
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

    /// What is no answer is nobody's: whoever waits for it waits in vain.
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
            // Whoever has stopped waiting has closed the channel.
            let _ = waiting.try_send(answer);
        }
    }
}

impl ConnectionState {
    fn send(&mut self, order: Order) -> Result<Receiver<Answer>, NoAnswer> {
        let writer = self.writer.as_mut().ok_or(NoAnswer::NotSent)?;
        self.last += 1;
        let text = format!("{}\n", Message { number: self.last, order });
        writer.write_all(text.as_bytes()).map_err(|_| NoAnswer::MaybeSent)?;
        let (heard, answer) = sync_channel(1);
        self.waiting.insert(self.last, heard);
        Ok(answer)
    }

    /// Ends a conversation, if it is still that one. Whoever waits is told by the sender's end.
    fn end(&mut self, conversation: u64) {
        if self.conversation == conversation {
            if let Some(writer) = self.writer.take() {
                // The reader finds its end of the line; one that is gone already it has found.
                let _ = writer.shutdown(Shutdown::Both);
            }
            self.waiting.clear();
        }
    }
}
