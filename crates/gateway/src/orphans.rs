//! Tells the stop daemon which requests were given up while the application worked for them.
//!
//! The gateway knows first that a client has left: it closes its connection to the application, and says at the
//! daemon's socket (`sentry.socket`) that whatever works for the request shall stop. Not on the data path: a request
//! puts its name into a bounded channel and goes on, a thread of its own writes. A daemon that is not there, or does
//! not read, costs messages, which are counted, and nothing else. What comes too late is worth nothing, so none are
//! kept for it.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bywash_engine::Outcome;
use bywash_lease::{Message, Order, Reason, RequestId, Scope};
use prometheus_client::metrics::counter::Counter;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::gateway::GatewayError;

/// Requests that may wait to be told of.
const WAITING: usize = 16_384;
/// Messages written at once.
const BATCH: usize = 512;
/// How long the daemon may take no message.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the rest of its answers is waited for before a look whether they have come.
const LOOK: Duration = Duration::from_millis(100);
/// A daemon that was not there is not looked for again before.
const PAUSE: Duration = Duration::from_millis(200);

/// A request that was given up.
pub(crate) struct GivenUp {
    pub(crate) name: u64,
    pub(crate) reason: Reason,
    /// Its trace and span, as the application got it, if it is ours.
    pub(crate) traceparent: Option<String>,
}

/// What is counted.
#[derive(Clone)]
pub(crate) struct Counts {
    /// Requests that the daemon was told of.
    pub(crate) told: Counter,
    /// Requests that it should have been told of.
    pub(crate) lost: Counter,
    /// Messages that it refused.
    pub(crate) refused: Counter,
}

/// Where requests are put that were given up; its thread ends when it is dropped.
pub(crate) struct Teller {
    given_up: SyncSender<GivenUp>,
    counts: Counts,
}

/// Why whatever works for a request shall stop that ended so, if it shall. Of one that was waited for no longer, whoever
/// waited has said so.
pub(crate) const fn reason(outcome: Outcome) -> Option<Reason> {
    match outcome {
        Outcome::Orphaned => Some(Reason::ClientLeft),
        Outcome::Terminated => Some(Reason::RanTooLong),
        Outcome::UpstreamError
        | Outcome::Served
        | Outcome::Late
        | Outcome::Shed
        | Outcome::Throttled
        | Outcome::Expired => None,
    }
}

impl Teller {
    pub(crate) fn start(socket: &Path, counts: &Counts) -> Result<Arc<Self>, GatewayError> {
        let (given_up, waiting) = sync_channel(WAITING);
        let daemon = Daemon {
            socket: socket.to_owned(),
            stream: None,
            tried: None,
            number: 0,
            unanswered: 0,
            counts: counts.clone(),
        };
        std::thread::Builder::new()
            .name("orphans".into())
            .spawn(move || daemon.run(&waiting))
            .map_err(GatewayError::Thread)?;
        Ok(Arc::new(Self { given_up, counts: counts.clone() }))
    }

    pub(crate) fn tell(&self, given_up: GivenUp) {
        if self.given_up.try_send(given_up).is_err() {
            self.counts.lost.inc();
        }
    }
}

/// The daemon, as this side sees it.
struct Daemon {
    socket: PathBuf,
    stream: Option<UnixStream>,
    /// When it was last looked for in vain.
    tried: Option<Instant>,
    number: u64,
    /// Messages of this conversation.
    unanswered: u64,
    counts: Counts,
}

impl Daemon {
    /// Until nobody can give up anything any more.
    fn run(mut self, waiting: &Receiver<GivenUp>) {
        while let Some(first) = self.next(waiting) {
            let mut text = String::new();
            let mut count = 0;
            let more = std::iter::from_fn(|| waiting.try_recv().ok());
            for given_up in std::iter::once(first).chain(more).take(BATCH) {
                self.number += 1;
                // Writing to a text cannot fail.
                let _ = writeln!(text, "{}", message(self.number, given_up));
                count += 1;
            }
            match self.write(text.as_bytes()) {
                Ok(()) => {
                    self.unanswered += count;
                    self.counts.told.inc_by(count)
                }
                Err(()) => self.counts.lost.inc_by(count),
            };
        }
    }

    /// Hears what is answered while there is nothing to say. `None`: there never will be.
    fn next(&mut self, waiting: &Receiver<GivenUp>) -> Option<GivenUp> {
        while self.unanswered > 0 {
            match waiting.recv_timeout(LOOK) {
                Ok(given_up) => return Some(given_up),
                Err(RecvTimeoutError::Timeout) => self.hear(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        waiting.recv().ok()
    }

    /// A daemon that was started anew has closed the connection: then there is another try. One that takes nothing is
    /// left alone for a while, as one that is not there.
    fn write(&mut self, text: &[u8]) -> Result<(), ()> {
        self.hear();
        for _ in 0..2 {
            if self.stream.is_none() {
                self.connect();
            }
            let Some(stream) = &mut self.stream else { return Err(()) };
            let Err(error) = stream.write_all(text) else { return Ok(()) };
            self.stream = None;
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
                self.tried = Some(Instant::now());
                return Err(());
            }
        }
        Err(())
    }

    fn connect(&mut self) {
        if self.tried.is_some_and(|tried| tried.elapsed() < PAUSE) {
            return;
        }
        self.unanswered = 0;
        self.stream = connect(&self.socket).ok();
        self.tried = self.stream.is_none().then(Instant::now);
    }

    /// Reads what there is of answers: a daemon cuts off who never does.
    fn hear(&mut self) {
        let Some(stream) = &mut self.stream else {
            self.unanswered = 0;
            return;
        };
        let mut answers = [0; 16 * 1024];
        let mut is_gone = stream.set_nonblocking(true).is_err();
        while !is_gone {
            match stream.read(&mut answers) {
                Ok(0) => is_gone = true,
                Ok(count) => {
                    let answers = &answers[..count];
                    self.counts.refused.inc_by(refusals(answers));
                    let lines = answers.split(|byte| *byte == b'\n').skip(1).count() as u64;
                    self.unanswered = self.unanswered.saturating_sub(lines);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => is_gone = true,
            }
        }
        if is_gone || stream.set_nonblocking(false).is_err() {
            self.stream = None;
        }
    }
}

/// Also the connection is waited for no longer: one that accepts nobody lets us stand in a line that can be full.
fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(OwnedFd::from(socket).into())
}

fn message(number: u64, given_up: GivenUp) -> Message {
    let GivenUp { name, reason, traceparent } = given_up;
    let request: RequestId = format!("{name:016x}").parse().expect("hexadecimal digits are a name");
    let scope = Scope::All;
    Message { number, order: Order::Stop { request, reason, scope, not_after: None, traceparent } }
}

/// Answers that begin with a number and `ERR`. One that is torn by the end of a read is not counted.
fn refusals(answers: &[u8]) -> u64 {
    let is_one = |line: &[u8]| {
        let word = line.split(|byte| *byte == b' ').nth(1);
        word == Some(b"ERR")
    };
    answers.split(|byte| *byte == b'\n').filter(|line| is_one(line)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_request_as_the_application_got_it() {
        let given_up = GivenUp { name: 0xd42, reason: Reason::ClientLeft, traceparent: None };
        assert_eq!(message(7, given_up).to_string(), "7 STOP 0000000000000d42 client_left");
    }

    fn counts() -> Counts {
        Counts { told: Counter::default(), lost: Counter::default(), refused: Counter::default() }
    }

    fn left(name: u64) -> GivenUp {
        let traceparent = Some("00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
        GivenUp { name, reason: Reason::ClientLeft, traceparent }
    }

    #[test]
    fn whoever_tells_never_waits() {
        let (given_up, _nobody_takes) = sync_channel(2);
        let teller = Teller { given_up, counts: counts() };
        for name in 0..5 {
            teller.tell(left(name));
        }
        assert_eq!(teller.counts.lost.get(), 3);
    }

    #[test]
    fn a_daemon_that_never_reads_costs_messages_and_those_who_come_after_it_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("sentry.sock");
        let deaf = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let counts = counts();
        let teller = Teller::start(&socket, &counts).unwrap();
        // More than its socket takes.
        let all = 8000;
        for name in 0..all {
            teller.tell(left(name));
        }
        while counts.told.get() + counts.lost.get() < all {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(counts.lost.get() > 0, "all were taken");
        drop(deaf);
        std::fs::remove_file(&socket).unwrap();
        let daemon = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let told = counts.told.get();
        while counts.told.get() == told {
            teller.tell(left(all));
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut heard = String::new();
        let mut stream = std::io::BufReader::new(daemon.accept().unwrap().0);
        std::io::BufRead::read_line(&mut stream, &mut heard).unwrap();
        assert!(heard.contains(" STOP 0000000000001f40 client_left"), "{heard}");
    }

    #[test]
    fn refusals_are_counted() {
        let answers = b"1 OK cancelled=1 spared=0\n2 ERR forbidden add\n3 ERR late it\n4 OK ERR\n";
        assert_eq!(refusals(answers), 2);
    }
}
