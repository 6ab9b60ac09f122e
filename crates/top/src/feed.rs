//! Queries the gateway on a separate thread. So a gateway that answers late or not at all does not
//! prevent the user from quitting.
//!
//! The status, the sums of the window and the new rows of the history are fetched once a second.
//! Other answers change seldom, and are fetched only when their revision changes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bywash_api::{Audit, Elephant, Elephants, Explained, Policy, Request, Requests, Status};
use bywash_command::Failure;
use bywash_command::which::Which;
use bywash_command::{admin_client, elephant_text, request_text};
use bywash_control::Note;
use bywash_history::{Columns, WindowSums};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::{ConfirmedDecision, Verb};
use super::tables::View;
use crate::args::Window;

const FETCH_INTERVAL: Duration = Duration::from_secs(1);

/// A command to the thread that queries the gateway, in addition to its regular queries.
#[derive(Debug)]
pub(super) enum FeedCommand {
    /// Also fetch the values that this table shows, from now on.
    ShowView(View),
    /// Switch to the window after the present one.
    NextWindow,
    /// Pause the regular queries if `true`, otherwise resume them.
    Pause(bool),
    /// Fetch the explanation of the decision about the request with this ID.
    Explain(String),
    /// Fetch the explanation of the decision about the last refused request of this class.
    ExplainLast(String),
    /// Fetch all that is known about the elephant with this number.
    Elephant(u32),
    /// Fetch all that is known about the elephant with this number, because the operator wants to
    /// take a decision of this kind about it.
    Consider(Verb, u32),
    /// Send an operator's decision.
    Decide(ConfirmedDecision),
}

/// The result of a query or a command, sent to the screen.
#[derive(Debug)]
pub(super) enum Update {
    Answers(Box<Answers>),
    /// The window that is shown from now on, and its sums.
    Window(Window, WindowSums),
    /// No gateway answers, or its answer is not valid. The text is the reason.
    Silence(String),
    /// A title and a text to read.
    Text(&'static str, String),
    /// The result of [`FeedCommand::Consider`]: the kind of decision, the elephant, and the text to
    /// show first.
    Considered(Verb, Box<Elephant>, String),
    /// The gateway refused a query or a decision. The text is the reason.
    Refused(String),
    Done(String),
}

/// The answers to the regular queries of one second. A field is `None` if the answer has not
/// changed, or if the present table does not show it.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    pub(super) status: Status,
    pub(super) window: Window,
    /// The sums over the selected window.
    pub(super) sums: WindowSums,
    /// The rows of the history that are new.
    pub(super) rows: Columns,
    /// Whether `rows` replaces all earlier rows, because another gateway answers now.
    pub(super) anew: bool,
    pub(super) elephants: Option<Elephants>,
    pub(super) policy: Option<Policy>,
    pub(super) requests: Option<Vec<Request>>,
    pub(super) notes: Option<Vec<Note>>,
}

/// The state of the thread that queries the gateway.
pub(super) struct Feed {
    which: Which,
    by: String,
    view: View,
    window: Window,
    seen: Seen,
    /// The time at which the next regular queries are due.
    due: Instant,
    paused: bool,
}

/// The revisions and numbers of the last complete answers. A later answer with other values shows a
/// change.
#[derive(Clone, Copy, Default)]
struct Seen {
    pid: Option<u32>,
    uptime_ms: u64,
    /// The number of the first row of the history that has not been fetched.
    next: u64,
    elephants: Option<u64>,
    policy: Option<u64>,
    audit: Option<u64>,
}

impl Seen {
    /// Returns whether the status comes from another process than the last one. The process ID
    /// alone is not enough: in containers, all processes may have the same ID.
    fn is_other(&self, status: &Status) -> bool {
        self.pid != Some(status.pid) || status.uptime_ms < self.uptime_ms
    }
}

impl Feed {
    pub(super) fn new(which: Which, by: String, window: Window) -> Self {
        Self {
            which,
            by,
            view: View::Classes,
            window,
            seen: Seen::default(),
            due: Instant::now(),
            paused: false,
        }
    }

    /// Starts the thread, and returns the channels to and from it.
    pub(super) fn start(self) -> (Sender<FeedCommand>, Receiver<Update>) {
        let ((commands, todo), (sender, updates)) = (channel(), channel());
        thread::spawn(move || self.run(&todo, &sender));
        (commands, updates)
    }

    fn run(mut self, todo: &Receiver<FeedCommand>, sender: &Sender<Update>) {
        self.due = Instant::now() + FETCH_INTERVAL;
        loop {
            let update = match todo.recv_timeout(self.due.saturating_duration_since(Instant::now()))
            {
                Ok(command) => self.execute(command),
                Err(RecvTimeoutError::Timeout) => self.fetch_if_running(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if update.is_some_and(|update| sender.send(update).is_err()) {
                return;
            }
        }
    }

    fn fetch_if_running(&mut self) -> Option<Update> {
        self.due = Instant::now() + FETCH_INTERVAL;
        (!self.paused).then(|| match self.fetch() {
            Ok(answers) => Update::Answers(Box::new(answers)),
            Err(why) => Update::Silence(why.words().to_owned()),
        })
    }

    /// Fetches everything that is new. If one query fails, all of them are repeated at the next
    /// call.
    pub(super) fn fetch(&mut self) -> Result<Answers, Failure> {
        let status: Status = self.get("/v1/status")?;
        let anew = self.seen.is_other(&status);
        let seen = if anew { Seen::default() } else { self.seen };
        let sums = self.sums(self.window)?;
        let rows: Columns = self.get(&format!("/v1/history?range=15m&from={}", seen.next))?;
        let now = status.revisions;
        let elephants = self.get_if(seen.elephants != Some(now.elephants), "/v1/elephants")?;
        let policy = self.get_if(seen.policy != Some(now.policy), "/v1/policy")?;
        let has_news = self.view == View::Decisions && seen.audit != Some(now.audit);
        let notes: Option<Audit> = self.get_if(has_news, "/v1/audit?limit=200")?;
        let requests: Option<Requests> = match self.view {
            View::Requests => Some(self.get("/v1/requests?limit=200")?),
            View::Classes => Some(self.get("/v1/requests?limit=40")?),
            View::Elephants | View::Decisions => None,
        };
        self.seen = Seen {
            pid: Some(status.pid),
            uptime_ms: status.uptime_ms,
            next: rows.number.last().map_or(seen.next, |last| last.saturating_add(1)),
            elephants: Some(now.elephants),
            policy: Some(now.policy),
            audit: notes.as_ref().map_or(seen.audit, |_| Some(now.audit)),
        };
        let (requests, notes) = (requests.map(|all| all.requests), notes.map(|all| all.notes));
        let window = self.window;
        Ok(Answers { status, window, sums, rows, anew, elephants, policy, requests, notes })
    }

    fn sums(&self, window: Window) -> Result<WindowSums, Failure> {
        self.get(&format!("/v1/history?window={}", window.value()))
    }

    /// Switches to the next window if the gateway returns its sums. This works while the regular
    /// queries are paused, too.
    fn next_window(&mut self) -> Result<Update, Failure> {
        let next = self.window.next();
        let sums = self.sums(next)?;
        self.window = next;
        Ok(Update::Window(next, sums))
    }

    fn get_if<T: DeserializeOwned>(&self, wanted: bool, path: &str) -> Result<Option<T>, Failure> {
        wanted.then(|| self.get(path)).transpose()
    }

    fn execute(&mut self, command: FeedCommand) -> Option<Update> {
        let done = match command {
            FeedCommand::ShowView(view) => {
                self.view = view;
                self.due = Instant::now();
                return None;
            }
            FeedCommand::Pause(paused) => {
                self.paused = paused;
                self.due = Instant::now();
                return None;
            }
            FeedCommand::NextWindow => self.next_window(),
            FeedCommand::Explain(name) => self.explain(&name),
            FeedCommand::ExplainLast(class) => self.explain_last(&class),
            FeedCommand::Elephant(number) => {
                self.elephant(number).map(|(_, details)| Update::Text("Elephant", details))
            }
            FeedCommand::Consider(verb, number) => self
                .elephant(number)
                .map(|(elephant, details)| Update::Considered(verb, Box::new(elephant), details)),
            FeedCommand::Decide(decision) => self.decide(&decision),
        };
        Some(done.unwrap_or_else(|why| Update::Refused(why.words().to_owned())))
    }

    fn explain(&self, name: &str) -> Result<Update, Failure> {
        if name.len() != 16 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Failure::running(
                "a malformed message is not a request, so there is no decision to explain",
            ));
        }
        let entry: Explained = self.get(&format!("/v1/requests/{name}"))?;
        Ok(Update::Text("Why?", request_text::explained(&entry)))
    }

    fn explain_last(&self, class: &str) -> Result<Update, Failure> {
        let class = percent_encoded(class);
        let path = format!("/v1/requests?limit=1&decision=shed&class={class}");
        let last: Requests = self.get(&path)?;
        let name =
            last.requests.first().and_then(|one| one.life.as_ref()).map(|life| &life.request);
        let none = "none of the last 10,000 requests was refused, or would have been refused, in \
                    this class";
        self.explain(name.ok_or_else(|| Failure::running(none))?)
    }

    fn elephant(&self, number: u32) -> Result<(Elephant, String), Failure> {
        let elephant: Elephant = self.get(&format!("/v1/elephants/{number}"))?;
        let details = elephant_text::details(&elephant);
        Ok((elephant, details))
    }

    fn decide(&mut self, decision: &ConfirmedDecision) -> Result<Update, Failure> {
        // The effect is shown at once. If the decision was refused, the decision of the other
        // operator is shown.
        (self.seen.elephants, self.seen.policy) = (None, None);
        self.due = Instant::now();
        let body = decision.body(&self.by).map_err(Failure::running)?;
        let _: Value = admin_client::post(&self.which, &self.by, &decision.path(), &body)?;
        Ok(Update::Done(decision.done()))
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        admin_client::get(&self.which, path)
    }
}

/// Percent-encodes a name, for the query of a URL.
fn percent_encoded(name: &str) -> String {
    let spelled = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(spelled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_become_another_question() {
        assert_eq!(percent_encoded("add-to_cart.1"), "add-to_cart.1");
        assert_eq!(percent_encoded("a&limit=9 #\r\né"), "a%26limit%3D9%20%23%0D%0A%C3%A9");
    }
}
