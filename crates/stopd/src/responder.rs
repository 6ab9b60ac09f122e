//! Sends the responses to one client.

use std::cell::Cell;
use std::rc::Rc;

use bywash_lease::Answer;
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
        // An error means that the client has disconnected.
        let _ = self.lines.send(format!("{number} {answer}\n"));
    }
}
