//! A conversation with the stop daemon: lines over a socket, numbered, answered in any order.
//!
//! One task writes and reads. It gives the numbers, so that nobody needs a lock for them; what is said first is sent
//! first, so a stop is heard before the releases that follow. The conversation is over when that task has ended: the
//! stream broke, an answer took too long, or could not be understood. Then nobody gets an answer any more, and all
//! leases that were made in it have ended.

use std::collections::HashMap;
use std::fmt::Write;

use bywash_lease::{Answer, Message, OWN, Order};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::ANSWER_WITHIN;
use crate::token::Reason;

/// How many lines are sent at once.
const TOGETHER: usize = 64;

/// A clone is the same conversation.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    lines: mpsc::UnboundedSender<Line>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Line {
    order: Order,
    answered: Option<oneshot::Sender<Answer>>,
    /// Whom to tell that his own lease is stopped.
    told: Option<oneshot::Sender<Reason>>,
}

/// There is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Nothing was said, as the conversation was over.
    Unsaid,
    /// It is over now. What was said may have been heard.
    Unanswered,
}

/// `refused` is told of each stop that is refused: nobody waits for its answer.
pub(super) fn converse(
    stream: UnixStream,
    refused: impl Fn() + Send + Sync + 'static,
) -> Conversation {
    let (lines, said) = mpsc::unbounded_channel();
    let speaker = Speaker {
        said,
        number: 0,
        waiting: HashMap::new(),
        own: HashMap::new(),
        refused: Box::new(refused),
    };
    let task = tokio::spawn(speaker.run(stream)).abort_handle();
    Conversation { lines, task }
}

impl Conversation {
    pub(super) fn is_over(&self) -> bool {
        self.lines.is_closed()
    }

    /// Says something whose answer is of no use. Whether it will be sent.
    pub(super) fn say(&self, order: Order) -> bool {
        self.lines.send(Line { order, answered: None, told: None }).is_ok()
    }

    pub(super) async fn ask(
        &self,
        order: Order,
        told: Option<oneshot::Sender<Reason>>,
    ) -> Result<Answer, Silence> {
        let (sender, answer) = oneshot::channel();
        let line = Line { order, answered: Some(sender), told };
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
    /// By the number of the lease.
    own: HashMap<u64, oneshot::Sender<Reason>>,
    refused: Box<dyn Fn() + Send + Sync>,
}

impl Speaker {
    /// Until one of the two sides has had enough.
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

    fn write(&mut self, Line { order, answered, told }: Line, text: &mut String) {
        self.number += 1;
        let number = self.number;
        self.waiting.extend(answered.map(|answered| (number, answered)));
        match &order {
            Order::Lease { connection, .. } => {
                self.own.extend(told.map(|told| (*connection, told)));
            }
            Order::Release { database, connection, .. } if database.as_str() == OWN => {
                self.own.remove(connection);
            }
            Order::Release { .. } | Order::Stop { .. } => {}
        }
        writeln!(text, "{}", Message { number, order }).expect("a string takes any text");
    }

    /// Whether it was an answer. Whoever does not wait for his any more has ended the conversation, or was dropped.
    fn hear(&mut self, line: &str) -> bool {
        let Ok((number, answer)) = Answer::parse(line) else { return false };
        match answer {
            Answer::Told { reason, connection, .. } => {
                if let Some(told) = self.own.remove(&connection) {
                    let _ = told.send(Reason::of_line(reason));
                }
            }
            // A line of ours was none.
            _ if number == 0 => return false,
            Answer::Done | Answer::Stopped(_) | Answer::Cancelled { .. } | Answer::Refused(..) => {
                if let Some(answered) = self.waiting.remove(&number) {
                    let _ = answered.send(answer);
                } else if let Answer::Refused(..) = answer {
                    (self.refused)();
                }
            }
        }
        true
    }
}
