//! A conversation with the stop daemon: numbered lines over a Unix socket, answered in any order.
//!
//! One task does all writing and reading. It also assigns the numbers, so that no lock is needed.
//! Lines are sent in the order in which they were submitted. So the daemon reads a stop before the
//! releases that follow it.
//!
//! The conversation is over when that task has ended. This happens when the stream breaks, when an
//! answer is late, or when an answer cannot be parsed. From then on no line is answered, and all
//! leases of the conversation have ended.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use bywash_lease::{Answer, Command, Message, OWN};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::ANSWER_WITHIN;
use crate::terminated::Reason;

/// The maximum number of lines that are sent with one write.
const TOGETHER: usize = 64;

/// A handle of a conversation with the daemon. Clones share the conversation.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    lines: mpsc::UnboundedSender<Line>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Line {
    command: Command,
    answered: Option<oneshot::Sender<Answer>>,
    /// The channel that gets the reason if a lease of the process's own work is stopped.
    told: Option<oneshot::Sender<Reason>>,
}

/// The reason why a line has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The line was not sent, because the conversation was already over.
    Unsaid,
    /// The line was not answered in time, or the conversation ended meanwhile. The daemon may have
    /// read the line.
    Unanswered,
}

/// Starts a conversation on `stream`. `stopped` is called for each answer to a stop, because no
/// caller waits for such an answer.
pub(super) fn converse(
    stream: UnixStream,
    stopped: impl Fn(&Answer) + Send + Sync + 'static,
) -> Conversation {
    let (lines, said) = mpsc::unbounded_channel();
    let speaker = Speaker {
        said,
        number: 0,
        waiting: HashMap::new(),
        own: HashMap::new(),
        stops: HashSet::new(),
        stopped: Box::new(stopped),
    };
    let task = tokio::spawn(speaker.run(stream)).abort_handle();
    Conversation { lines, task }
}

impl Conversation {
    pub(super) fn is_over(&self) -> bool {
        self.lines.is_closed()
    }

    /// Submits a line without waiting for its answer. If the conversation is over, the line is
    /// discarded.
    pub(crate) fn say(&self, command: Command) {
        let _ = self.lines.send(Line { command, answered: None, told: None });
    }

    pub(crate) async fn ask(
        &self,
        command: Command,
        told: Option<oneshot::Sender<Reason>>,
    ) -> Result<Answer, Silence> {
        let (sender, answer) = oneshot::channel();
        let line = Line { command, answered: Some(sender), told };
        self.lines.send(line).map_err(|_| Silence::Unsaid)?;
        if let Ok(Ok(answer)) = timeout(ANSWER_WITHIN, answer).await {
            return Ok(answer);
        }
        self.task.abort();
        Err(Silence::Unanswered)
    }
}

struct Speaker {
    said: mpsc::UnboundedReceiver<Line>,
    number: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// The channels of the leases of the process's own work, keyed by the number of the lease.
    own: HashMap<u64, oneshot::Sender<Reason>>,
    /// The numbers of the lines that are stops and are not answered yet.
    stops: HashSet<u64>,
    stopped: Box<dyn Fn(&Answer) + Send + Sync>,
}

impl Speaker {
    /// Writes and reads lines until either side ends the conversation.
    async fn run(mut self, mut stream: UnixStream) {
        let (reader, mut writer) = stream.split();
        let mut heard = BufReader::new(reader).lines();
        let (mut lines, mut text) = (Vec::with_capacity(TOGETHER), String::new());
        loop {
            tokio::select! {
                count = self.said.recv_many(&mut lines, TOGETHER) => {
                    text.clear();
                    lines.drain(..).for_each(|line| self.write(line, &mut text));
                    if count == 0 || writer.write_all(text.as_bytes()).await.is_err() {
                        return;
                    }
                }
                line = heard.next_line() => match line {
                    Ok(Some(line)) if self.hear(&line) => {}
                    Ok(Some(_) | None) | Err(_) => return,
                }
            }
        }
    }

    fn write(&mut self, Line { command, answered, told }: Line, text: &mut String) {
        self.number += 1;
        let number = self.number;
        self.waiting.extend(answered.map(|answered| (number, answered)));
        match &command {
            Command::Lease { connection, .. } => {
                self.own.extend(told.map(|told| (*connection, told)));
            }
            Command::Release { database, connection, .. } if database.as_str() == OWN => {
                self.own.remove(connection);
            }
            Command::Release { .. } => {}
            Command::Stop { .. } => {
                self.stops.insert(number);
            }
        }
        writeln!(text, "{}", Message { number, command }).expect("a string takes any text");
    }

    /// Handles one line from the daemon. Returns whether it was a valid answer. An answer for which
    /// no caller waits is valid: the caller has given up or was dropped.
    fn hear(&mut self, line: &str) -> bool {
        let Ok((number, answer)) = Answer::parse(line) else { return false };
        match answer {
            Answer::StopWork { reason, connection, .. } => {
                if let Some(told) = self.own.remove(&connection) {
                    let _ = told.send(Reason::of_line(reason));
                }
            }
            // With the number 0, the daemon reports that it could not parse a line of this process.
            // A number above the last one answers a line that was never sent.
            _ if number == 0 || number > self.number => return false,
            Answer::Done | Answer::Stopped(_) | Answer::Cancelled { .. } | Answer::Refused(..) => {
                if let Some(answered) = self.waiting.remove(&number) {
                    let _ = answered.send(answer);
                } else if self.stops.remove(&number) {
                    (self.stopped)(&answer);
                }
            }
        }
        true
    }
}
