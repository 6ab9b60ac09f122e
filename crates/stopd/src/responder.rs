//! Sends the responses to one client.

use std::cell::Cell;
use std::rc::Rc;

use bywash_lease::{Answer, Refusal};
use tokio::sync::{Notify, mpsc};

/// The channel through which responses are sent to a client.
#[derive(Clone)]
pub(crate) struct Responder {
    pub(crate) lines: mpsc::UnboundedSender<String>,
    pub(crate) owed: Rc<Outstanding>,
}

/// The number of responses to a client that are outstanding.
#[derive(Default)]
pub(crate) struct Outstanding {
    pub(crate) count: Cell<usize>,
    pub(crate) less: Notify,
}

impl Responder {
    pub(crate) fn send(&self, number: u64, answer: &Answer) {
        self.send_line(format!("{number} {answer}\n"));
    }

    pub(crate) fn refuse(&self, number: u64, refusal: Refusal, why: &str) {
        self.send(number, &Answer::Refused(refusal, why.to_owned()));
    }

    /// Sends a response that is already in the form of a line.
    pub(crate) fn send_line(&self, line: String) {
        // An error means that the client has disconnected.
        let _ = self.lines.send(line);
    }
}
