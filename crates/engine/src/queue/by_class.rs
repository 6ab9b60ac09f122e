//! The schedulers of paper 1 with a bounded queue per class, by revenue: `lifo-pri`, and its FIFO
//! variant `always-fifo` (8Q-AF in the paper).
//!
//! Source: paper 1, «LIFO-Pri Scheme».
//! - Transaction queues go strictly before browsing queues [paper 1.2].
//! - Within a tier the queue with the largest `length × utility` is next [paper 1.3].
//! - Transactions are always served oldest first.
//! - Browsing is served newest first from when CPU utilisation over an interval exceeds the upper
//!   threshold, until it falls below the lower one [paper 1.4]. `always-fifo` lacks this rule.
//!
//! This follows the paper exactly. Length counts requests, not principals, and none of our own
//! guards is included (see `session_first` for those).

use alloc::vec::Vec;

use bywash_units::{TimeSpan, Utility};

use super::SchedulerSettings;
use super::{Push, QueueView, Scheduler, Waiting, pressure};
use crate::event::{Meter, Reading};
use crate::overload::Thresholds;
use crate::reason::Reason;
use crate::request::{Class, RequestId, Tier};

/// The scheduler with one queue per class and the dynamic priority `length × utility`.
#[derive(Debug)]
pub struct ByClass {
    queues: Vec<Queue>,
    /// The thresholds of CPU utilisation for newest first; `None` means always oldest first.
    cpu: Option<Thresholds>,
}

#[derive(Debug)]
struct Queue {
    tier: Tier,
    utility: Utility,
    places: u32,
}

impl ByClass {
    /// Creates the scheduler `always-fifo` for these classes, from the values of its parameters.
    pub fn always_fifo(settings: &SchedulerSettings, classes: &[Class]) -> Self {
        let capacity = |tier: Tier| match tier {
            Tier::Transaction => settings.count("transaction_capacity"),
            Tier::Browsing => settings.count("browsing_capacity"),
        };
        let queue = |class: &Class| Queue {
            tier: class.tier,
            utility: class.utility,
            places: class.queue.unwrap_or_else(|| capacity(class.tier)),
        };
        Self { queues: classes.iter().map(queue).collect(), cpu: None }
    }

    /// Creates the scheduler `lifo-pri` for these classes, from the values of its parameters.
    pub fn lifo_pri(settings: &SchedulerSettings, classes: &[Class]) -> Self {
        Self { cpu: Some(Thresholds::cpu(settings)), ..Self::always_fifo(settings, classes) }
    }

    /// Returns the class of this tier with the largest `length × utility`. If several classes are
    /// equal, returns the first of them. Returns `None` if no request of the tier waits.
    fn largest(&self, view: &QueueView<'_>, tier: Tier) -> Option<usize> {
        let mut best = None;
        let mut most = -1.0;
        for (index, queue) in self.queues.iter().enumerate() {
            let length = view.length_of(index);
            let priority = f64::from(length) * queue.utility.get();
            if queue.tier == tier && length > 0 && priority > most {
                (best, most) = (Some(index), priority);
            }
        }
        best
    }

    /// Returns the class whose queue gets the next slot; `None` if no request waits.
    fn first(&self, view: &QueueView<'_>) -> Option<usize> {
        let transaction = self.largest(view, Tier::Transaction);
        transaction.or_else(|| self.largest(view, Tier::Browsing))
    }

    /// Returns whether the newest request of this class goes first at present.
    fn is_lifo_for_class(&self, class: usize) -> bool {
        self.queues[class].tier == Tier::Browsing && self.lifo()
    }
}

impl Scheduler for ByClass {
    fn push(&mut self, view: &QueueView<'_>, id: RequestId) -> Push {
        let class = view.waiting(id).class.index();
        if view.length_of(class) >= self.queues[class].places {
            return Push::Refused(Reason::QueueFull);
        }
        Push::Queued
    }

    fn pop(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let class = self.first(view)?;
        let newest = self.is_lifo_for_class(class);
        let next = if newest { view.newest_of(class) } else { view.oldest_of(class) };
        next.map(|id| (id, Reason::Best))
    }

    fn goes_first(&mut self, view: &QueueView<'_>, new: RequestId) -> RequestId {
        let own = view.waiting(new).class.index();
        let is_ahead = |class: usize| {
            self.queues[own].tier == Tier::Transaction && self.queues[class].tier == Tier::Browsing
        };
        match self.first(view) {
            Some(class) if class == own && self.is_lifo_for_class(own) || is_ahead(class) => new,
            Some(class) if self.is_lifo_for_class(class) => view.newest_of(class).unwrap_or(new),
            Some(class) => view.oldest_of(class).unwrap_or(new),
            None => new,
        }
    }

    fn pressure(&self, view: &QueueView<'_>, waiting: &Waiting, _: TimeSpan) -> f64 {
        let index = waiting.class.index();
        pressure(view.length_of(index) as usize, self.queues[index].places as usize)
    }

    fn read(&mut self, reading: Reading) {
        if let (Some(cpu), Meter::Cpu) = (&mut self.cpu, reading.meter) {
            cpu.read(reading.share);
        }
    }

    fn meter(&self) -> Option<(Meter, TimeSpan)> {
        self.cpu.as_ref().map(Thresholds::meter)
    }

    fn lifo(&self) -> bool {
        self.cpu.as_ref().is_some_and(Thresholds::overloaded)
    }
}
