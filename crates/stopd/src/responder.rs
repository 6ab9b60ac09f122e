//! The sender of the responses to a client.

use std::cell::Cell;
use std::rc::Rc;

use bywash_lease::Answer;
use tokio::sync::{Notify, mpsc};

/// The sender of a client's responses.
#[derive(Clone)]
pub(crate) struct Responder {
    pub(crate) lines: mpsc::UnboundedSender<String>,
    pub(crate) owed: Rc<Owed>,
}

/// The number of outstanding responses of a client.
#[derive(Default)]
pub(crate) struct Owed {
    pub(crate) count: Cell<usize>,
    pub(crate) less: Notify,
}

impl Responder {
    pub(crate) fn send(&self, number: u64, answer: &Answer) {
        // An error means that the client has disconnected.
        let _ = self.lines.send(format!("{number} {answer}\n"));
    }
}
