//! A conversation with the stop daemon: numbered lines over a socket, answered in any order.
//!
//! One task writes and reads. It assigns the numbers, so no lock is needed for them. Lines are sent
//! in the order in which they were submitted, so the daemon reads a stop before the releases that
//! follow it.
//!
//! The conversation is over when that task has ended: the stream broke, or an answer was late or
//! could not be parsed. From then on no line is answered, and all leases of the conversation have
//! ended.

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

/// The largest number of lines that are sent together.
const TOGETHER: usize = 64;

/// A handle of a conversation. Clones share the conversation.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    lines: mpsc::UnboundedSender<Line>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Line {
    command: Command,
    answered: Option<oneshot::Sender<Answer>>,
    /// Notified when the process's own lease is stopped.
    told: Option<oneshot::Sender<Reason>>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// No line was sent, because the conversation was over.
    Unsaid,
    /// The conversation is over now. The daemon may have read the line.
    Unanswered,
}

/// Starts a conversation. `stopped` is called for each answer to a stop, with whether the daemon
/// has agreed, because no caller waits for it.
pub(super) fn converse(
    stream: UnixStream,
    stopped: impl Fn(bool) + Send + Sync + 'static,
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

    /// Submits a line without waiting for its answer. If the conversation is over, nothing is sent.
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
    /// Keyed by the number of the lease.
    own: HashMap<u64, oneshot::Sender<Reason>>,
    /// The numbers of the stops that are not answered yet.
    stops: HashSet<u64>,
    stopped: Box<dyn Fn(bool) + Send + Sync>,
}

impl Speaker {
    /// Runs until either side ends the conversation.
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

    /// Returns whether the line was a valid answer. An answer without a waiting caller is valid:
    /// that caller has ended the conversation, or was dropped.
    fn hear(&mut self, line: &str) -> bool {
        let Ok((number, answer)) = Answer::parse(line) else { return false };
        match answer {
            Answer::StopWork { reason, connection, .. } => {
                if let Some(told) = self.own.remove(&connection) {
                    let _ = told.send(Reason::of_line(reason));
                }
            }
            // The daemon could not parse one of our lines.
            _ if number == 0 => return false,
            Answer::Done | Answer::Stopped(_) | Answer::Cancelled { .. } | Answer::Refused(..) => {
                if let Some(answered) = self.waiting.remove(&number) {
                    let _ = answered.send(answer);
                } else if self.stops.remove(&number) {
                    (self.stopped)(!matches!(answer, Answer::Refused(..)));
                }
            }
        }
        true
    }
}
