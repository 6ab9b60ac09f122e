//! A stop: the message, its job for each canceller, and the report to its sender.

use std::cell::Cell;
use std::rc::Rc;

use bywash_lease::{Answer, Part, Reason, RequestId};
use bywash_units::{Time, TimeSpan};

use crate::responder::Responder;

/// The pauses between searches for leased connections, in milliseconds. The last pause repeats.
const PAUSES: [u64; 8] = [5, 15, 30, 50, 100, 300, 500, 1000];
/// The pauses between searches for tagged statements without a lease, in milliseconds. After the
/// last pause there is one more search.
const PAUSES_OF_TAGS: [u64; 3] = [20, 180, 800];

/// The content of a STOP message.
pub(crate) struct Stop {
    pub(crate) request: RequestId,
    pub(crate) reason: Reason,
    /// The part of the work to stop; `None` for all of it.
    pub(crate) only: Option<Part>,
    pub(crate) not_after: Option<u64>,
    pub(crate) traceparent: Option<String>,
}

/// The result of a stop while its searches run. The response is sent when the last reference is
/// dropped.
pub(crate) struct Report {
    responder: Responder,
    number: u64,
    cancelled: Cell<u32>,
    spared: Cell<u32>,
}

impl Report {
    pub(crate) fn new(responder: &Responder, number: u64) -> Self {
        Self { responder: responder.clone(), number, cancelled: Cell::new(0), spared: Cell::new(0) }
    }

    pub(crate) fn cancelled(&self) {
        self.cancelled.set(self.cancelled.get() + 1);
    }

    pub(crate) fn spared(&self) {
        self.spared.set(self.spared.get() + 1);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let (cancelled, spared) = (self.cancelled.get(), self.spared.get());
        self.responder.send(self.number, &Answer::Cancelled { cancelled, spared });
    }
}

/// A stopped request whose statements a canceller searches for.
pub(crate) struct Job {
    pub(crate) request: RequestId,
    pub(crate) reason: Reason,
    /// The part of the work to stop; `None` for all of it.
    pub(crate) only: Option<Part>,
    pub(crate) traceparent: Option<String>,
    pub(crate) asked: Time,
    pub(crate) late: Time,
    pub(crate) due: Time,
    looks: usize,
    /// The report to the sender of the stop. `None` after the first search, whose result is the
    /// report.
    pub(crate) report: Option<Rc<Report>>,
    /// The reasons for which a statement of the request was already reported as spared, as a bit
    /// set of [`Spared`](crate::spared::Spared). Each reason is reported once.
    pub(crate) reported: Cell<u8>,
}

impl Job {
    pub(crate) fn new(stop: &Stop, now: Time, left: TimeSpan, report: &Rc<Report>) -> Self {
        Self {
            request: stop.request.clone(),
            reason: stop.reason,
            only: stop.only,
            traceparent: stop.traceparent.clone(),
            asked: now,
            late: now + left,
            due: now,
            looks: 0,
            report: Some(Rc::clone(report)),
            reported: Cell::new(0),
        }
    }

    /// Schedules the next search. Returns `None` if no search follows.
    pub(crate) fn again(mut self, now: Time, is_leased: bool) -> Option<Self> {
        self.report = None;
        let pause = if is_leased {
            PAUSES[self.looks.min(PAUSES.len() - 1)]
        } else {
            *PAUSES_OF_TAGS.get(self.looks)?
        };
        self.looks += 1;
        self.due = now + TimeSpan::from_millis(pause);
        (self.due < self.late).then_some(self)
    }
}
