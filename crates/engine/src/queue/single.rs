//! The scheduler `single-queue`: one queue for everything, the baseline that every server has (SQ
//! in paper 1).
//!
//! Source: paper 1, «Single Queue: FIFO order. Capacity: 100», and its LIFO variant [paper 1.1].

use bywash_units::TimeSpan;

use super::{Push, QueueView, Scheduler, SchedulerSettings, Waiting, pressure};
use crate::reason::Reason;
use crate::request::RequestId;

/// The scheduler with one bounded queue, oldest first or newest first.
#[derive(Debug)]
pub struct Single {
    capacity: usize,
    lifo: bool,
}

impl Single {
    /// Creates the scheduler from the values of its parameters.
    pub fn new(settings: &SchedulerSettings) -> Self {
        Self {
            capacity: settings.count("capacity") as usize,
            lifo: settings.choice("order") == "lifo",
        }
    }
}

impl Scheduler for Single {
    fn push(&mut self, view: &QueueView<'_>, _: RequestId) -> Push {
        if view.length() < self.capacity { Push::Queued } else { Push::Refused(Reason::QueueFull) }
    }

    fn pop(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let next = if self.lifo { view.newest() } else { view.oldest() };
        next.map(|id| (id, Reason::Best))
    }

    fn pressure(&self, view: &QueueView<'_>, _: &Waiting, _: TimeSpan) -> f64 {
        pressure(view.length(), self.capacity)
    }

    fn goes_first(&mut self, view: &QueueView<'_>, new: RequestId) -> RequestId {
        if self.lifo { new } else { view.oldest().unwrap_or(new) }
    }

    fn lifo(&self) -> bool {
        self.lifo
    }
}
