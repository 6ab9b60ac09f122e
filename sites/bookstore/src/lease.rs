//! Telling the stop daemon which request uses which connection.
//!
//! One line a message over a socket of this machine, each with a number that its answer carries (`crates/lease` has
//! the whole language):
//!
//! ```text
//! 7 LEASE 5f1c9a7e00000d42 shop 4711        7 OK | 7 STOPPED client_left | 7 ERR …
//! 8 RELEASE 5f1c9a7e00000d42 shop 4711      8 OK | 8 ERR …
//!                                           0 STOPPED 5f1c9a7e00000d42 client_left 4711
//! ```
//!
//! A connection is lent to the next request when its release was answered with OK: then nothing aimed at it is under
//! way. Without that answer it is closed. Without a daemon the store works as ever.
//!
//! Threads: workers write, one after the other, and wait on a channel of their own; one thread reads. The lock is
//! around the writing end and the two tables, held for one write of one short line, which has a time limit.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::database::Trouble;
use crate::request_id::RequestId;

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_millis(100);

/// After which a daemon that was not there is looked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// What the language calls a database that only its own process can stop.
const OWN: &str = "self";

/// The way to the daemon, shared by all workers.
#[derive(Clone)]
pub(crate) struct Desk {
    shared: Arc<Shared>,
    database: Arc<str>,
}

/// Keeps the way open; dropped, it ends the reading thread.
pub(crate) struct Caller {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    socket: PathBuf,
    is_over: AtomicBool,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// `None` while the daemon is not there.
    writer: Option<UnixStream>,
    last: u64,
    /// Who waits for an answer, by its number.
    waiting: HashMap<u64, SyncSender<Word>>,
    /// What stops the statement of a connection of ours.
    stops: HashMap<(String, u64), Arc<AtomicBool>>,
}

/// What the daemon answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Ok,
    Stopped,
    /// The daemon knows the connection as somebody else's, and has let both leases go.
    Taken,
    Refused,
}

/// Why there is no answer.
enum Unheard {
    /// Nobody has heard the question.
    Absent,
    /// Somebody may have.
    Silent,
}

/// A connection that works for a request.
#[must_use = "a lease ends with its release"]
pub(crate) struct Lease<'a> {
    desk: &'a Desk,
    request: &'a RequestId,
    connection: u64,
    /// Whether the daemon may believe that it holds.
    is_told: bool,
}

impl Caller {
    /// Looks for the daemon at `socket` from now on, whether it is there or not.
    pub(crate) fn new(socket: PathBuf) -> std::io::Result<Self> {
        let shared =
            Arc::new(Shared { socket, is_over: AtomicBool::new(false), line: Mutex::default() });
        let reading = Arc::clone(&shared);
        let reader = thread::Builder::new().name("bookstore-lease".to_owned());
        let reader = reader.spawn(move || reading.read())?;
        Ok(Self { shared, reader: Some(reader) })
    }

    /// For workers on a database that the daemon knows as `database`; `None`: one of this process.
    pub(crate) fn desk(&self, database: Option<&str>) -> Desk {
        Desk { shared: Arc::clone(&self.shared), database: database.unwrap_or(OWN).into() }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(writer) = &self.shared.lock().writer {
            // The reader finds its end of the line; one that is gone already it has found.
            let _ = writer.shutdown(Shutdown::Both);
        }
        if let Some(reader) = self.reader.take() {
            reader.thread().unpark();
            let _ = reader.join();
        }
    }
}

impl Desk {
    /// From now on `connection` works for `request`; an error if it must not. `stop` is set if the daemon says so
    /// while it does.
    pub(crate) fn lease<'a>(
        &'a self,
        request: &'a RequestId,
        connection: u64,
        stop: Option<Arc<AtomicBool>>,
    ) -> Result<Lease<'a>, Trouble> {
        let mut lease = Lease { desk: self, request, connection, is_told: false };
        if let Some(stop) = stop {
            self.shared.lock().stops.insert(lease.key(), stop);
        }
        match self.shared.ask(&lease.line("LEASE")) {
            // What is taken is not given back either, and so closed.
            Ok(Word::Ok | Word::Taken) | Err(Unheard::Silent) => lease.is_told = true,
            Ok(Word::Refused) | Err(Unheard::Absent) => {}
            Ok(Word::Stopped) => {
                lease.forget();
                return Err(Trouble::Cancelled);
            }
        }
        Ok(lease)
    }
}

impl Lease<'_> {
    /// It works for it no longer; whether it may be lent again.
    pub(crate) fn release(self) -> bool {
        self.forget();
        !self.is_told || matches!(self.desk.shared.ask(&self.line("RELEASE")), Ok(Word::Ok))
    }

    fn forget(&self) {
        self.desk.shared.lock().stops.remove(&self.key());
    }

    fn key(&self) -> (String, u64) {
        (self.request.as_str().to_owned(), self.connection)
    }

    fn line(&self, verb: &str) -> String {
        format!("{verb} {} {} {}", self.request.as_str(), self.desk.database, self.connection)
    }
}

impl Shared {
    /// Poison is ignored: every change under the lock is a single step.
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, order: &str) -> Result<Word, Unheard> {
        let (number, answer) = self.send(order)?;
        let word = answer.recv_timeout(ANSWER);
        if word == Err(RecvTimeoutError::Timeout) {
            self.lock().waiting.remove(&number);
        }
        word.map_err(|_| Unheard::Silent)
    }

    fn send(&self, order: &str) -> Result<(u64, Receiver<Word>), Unheard> {
        let mut line = self.lock();
        let line = &mut *line;
        let writer = line.writer.as_mut().ok_or(Unheard::Absent)?;
        line.last += 1;
        if writer.write_all(format!("{} {order}\n", line.last).as_bytes()).is_err() {
            // Half a line may be out: nothing that follows could be read.
            let _ = writer.shutdown(Shutdown::Both);
            line.writer = None;
            return Err(Unheard::Silent);
        }
        let (heard, answer) = sync_channel(1);
        line.waiting.insert(line.last, heard);
        Ok((line.last, answer))
    }

    fn read(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            if let Ok(stream) = self.call() {
                let mut lines = BufReader::new(stream).lines();
                while let Some(Ok(line)) = lines.next() {
                    self.hear(&line);
                }
            }
            // Whoever waits is told by the sender's end.
            let mut line = self.lock();
            line.writer = None;
            line.waiting.clear();
            drop(line);
            if !self.is_over.load(Ordering::Acquire) {
                thread::park_timeout(AGAIN);
            }
        }
    }

    fn call(&self) -> std::io::Result<UnixStream> {
        let stream = UnixStream::connect(&self.socket)?;
        let writer = stream.try_clone()?;
        writer.set_write_timeout(Some(ANSWER))?;
        let mut line = self.lock();
        if self.is_over.load(Ordering::Acquire) {
            return Err(std::io::Error::other("over"));
        }
        line.writer = Some(writer);
        Ok(stream)
    }

    fn hear(&self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let mut line = self.lock();
        match words[..] {
            ["0", "STOPPED", request, ..] => {
                for ((own, _), stop) in &line.stops {
                    if own == request {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            }
            [number, ref words @ ..] => {
                let word = match words {
                    ["OK", ..] => Word::Ok,
                    ["STOPPED", ..] => Word::Stopped,
                    ["ERR", "taken", ..] => Word::Taken,
                    _ => Word::Refused,
                };
                let waiting = number.parse().ok().and_then(|number| line.waiting.remove(&number));
                // Whoever has stopped waiting has closed the channel.
                waiting.and_then(|waiting| waiting.try_send(word).ok());
            }
            [] => {}
        }
    }
}
