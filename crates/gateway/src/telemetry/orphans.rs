//! Reports requests that were given up while the application works for them to the stop daemon.
//!
//! The gateway is the first to learn that a client has left. It closes its connection to the
//! application. It also sends a message to the daemon's socket (`stopd.socket`), which asks the
//! daemon to stop all work for the request.
//!
//! No request waits for that: a request puts its name into a bounded channel, and a separate thread
//! writes the messages. If the daemon is absent or does not read, messages are lost and counted,
//! and nothing else happens. A late message has no value, so none are kept for later.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bywash_engine::Outcome;
use bywash_lease::{Command, Message, Reason, RequestId, Scope};
use prometheus_client::metrics::counter::Counter;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::GatewayError;

/// The maximum number of requests that wait to be reported. Further ones are lost and counted.
const WAITING: usize = 16_384;
/// The maximum number of messages that are written at once.
const BATCH: usize = 512;
/// The maximum time for which a write, or connecting, waits for the daemon.
const PATIENCE: Duration = Duration::from_millis(100);
/// The interval at which the thread reads outstanding answers while there is nothing to report.
const LOOK: Duration = Duration::from_millis(100);
/// The minimum time between two attempts to reach the daemon, after a failed one.
const PAUSE: Duration = Duration::from_millis(200);

/// A request that was given up while the application works for it.
pub(crate) struct GivenUp {
    pub(crate) name: u64,
    pub(crate) reason: Reason,
    /// The `traceparent` that the application got with the request, if traces are on.
    pub(crate) traceparent: Option<String>,
}

/// The counters of reported requests, since the start.
#[derive(Clone)]
pub(crate) struct Counts {
    /// The number of requests that were reported to the daemon.
    pub(crate) reported: Counter,
    /// The number of requests that could not be reported.
    pub(crate) lost: Counter,
    /// The number of messages that the daemon refused.
    pub(crate) refused: Counter,
}

/// The queue of requests to report. The reporting thread ends when this is dropped.
pub(crate) struct CancelNotifier {
    given_up: SyncSender<GivenUp>,
    counts: Counts,
}

/// Returns the reason for which the work for a request with this outcome is stopped. Returns `None`
/// if the work is not stopped. The outcome does not show that the client's deadline has expired:
/// the caller must check that itself.
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

impl CancelNotifier {
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

    pub(crate) fn notify(&self, given_up: GivenUp) {
        if self.given_up.try_send(given_up).is_err() {
            self.counts.lost.inc();
        }
    }
}

/// The connection to the daemon, with what the gateway knows about it.
struct Daemon {
    socket: PathBuf,
    stream: Option<UnixStream>,
    /// The time at which the daemon was last found absent; `None` if it was reached since.
    tried: Option<Instant>,
    number: u64,
    /// The number of messages on this connection that the daemon has not answered yet.
    unanswered: u64,
    counts: Counts,
}

impl Daemon {
    /// Reports requests until all senders are gone.
    fn run(mut self, waiting: &Receiver<GivenUp>) {
        while let Some(first) = self.next(waiting) {
            let mut text = String::new();
            let mut count = 0;
            let more = std::iter::from_fn(|| waiting.try_recv().ok());
            for given_up in std::iter::once(first).chain(more).take(BATCH) {
                self.number += 1;
                // Writing to a `String` cannot fail.
                let _ = writeln!(text, "{}", message(self.number, given_up));
                count += 1;
            }
            match self.write(text.as_bytes()) {
                Ok(()) => {
                    self.unanswered += count;
                    self.counts.reported.inc_by(count)
                }
                Err(()) => self.counts.lost.inc_by(count),
            };
        }
    }

    /// Returns the next request to report. Reads outstanding answers while there is none. Returns
    /// `None` when all senders are gone.
    fn next(&mut self, waiting: &Receiver<GivenUp>) -> Option<GivenUp> {
        while self.unanswered > 0 {
            match waiting.recv_timeout(LOOK) {
                Ok(given_up) => return Some(given_up),
                Err(RecvTimeoutError::Timeout) => self.read_answers(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        waiting.recv().ok()
    }

    /// Writes messages. Connects again once if the write fails, because a daemon that was restarted
    /// has closed the connection. If the daemon accepts nothing within [`PATIENCE`], the connection
    /// is closed, and for [`PAUSE`] there is no further attempt.
    fn write(&mut self, text: &[u8]) -> Result<(), ()> {
        self.read_answers();
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

    /// Reads the answers that have arrived, without waiting, and counts refusals. Otherwise the
    /// daemon would close the connection, because it does so when its answers are not read.
    fn read_answers(&mut self) {
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

/// Connects to the daemon's socket within [`PATIENCE`]. Connecting blocks while the daemon's
/// backlog is full.
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
    Message {
        number,
        command: Command::Stop { request, reason, scope, not_after: None, traceparent },
    }
}

/// Returns the number of answers by which the daemon refuses a message: those that consist of a
/// number and `ERR`. Does not count an answer that is split between two reads.
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
        Counts {
            reported: Counter::default(),
            lost: Counter::default(),
            refused: Counter::default(),
        }
    }

    fn left(name: u64) -> GivenUp {
        let traceparent = Some("00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
        GivenUp { name, reason: Reason::ClientLeft, traceparent }
    }

    #[test]
    fn whoever_tells_never_waits() {
        let (given_up, _nobody_takes) = sync_channel(2);
        let notifier = CancelNotifier { given_up, counts: counts() };
        for name in 0..5 {
            notifier.notify(left(name));
        }
        assert_eq!(notifier.counts.lost.get(), 3);
    }

    #[test]
    fn a_daemon_that_never_reads_costs_messages_and_those_who_come_after_it_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("stopd.sock");
        let deaf = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let counts = counts();
        let notifier = CancelNotifier::start(&socket, &counts).unwrap();
        // These are more messages than the socket's buffer takes.
        let all = 8000;
        for name in 0..all {
            notifier.notify(left(name));
        }
        while counts.reported.get() + counts.lost.get() < all {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(counts.lost.get() > 0, "all were taken");
        drop(deaf);
        std::fs::remove_file(&socket).unwrap();
        let daemon = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let reported = counts.reported.get();
        while counts.reported.get() == reported {
            notifier.notify(left(all));
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
