//! The running totals behind [`Stats`](crate::Stats).
//!
//! Shared by the HTTP thread and all workers, so every one is an atomic. They order nothing: `Relaxed` throughout, and
//! a reading is a set of numbers each true at some moment.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::{Service, ServiceStats};

/// How a request that was received ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// Never queued, or thrown out of the queue when the store closed.
    Refused,
    /// Answered, and the client was there to take it.
    Served,
    /// Answered, and nobody was there.
    Orphaned,
    /// Stopped in the database.
    Cancelled,
    /// The database was not there, or failed.
    Failed,
}

/// How long a worker had to do with a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    pub(crate) all: Duration,
    /// After its client had left, if it has.
    pub(crate) in_vain: Option<Duration>,
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    services: [ServiceCounters; Service::ALL.len()],
    running: AtomicUsize,
    departed: AtomicU64,
    lost: AtomicU64,
    is_away: AtomicBool,
}

#[derive(Debug, Default)]
struct ServiceCounters {
    received: AtomicU64,
    refused: AtomicU64,
    served: AtomicU64,
    orphaned: AtomicU64,
    cancelled: AtomicU64,
    failed: AtomicU64,
    busy_us: AtomicU64,
    busy_us_departed: AtomicU64,
    busy_us_in_vain: AtomicU64,
}

impl Counters {
    pub(crate) fn received(&self, service: Service) {
        self.of(service).received.fetch_add(1, Relaxed);
    }

    /// A worker was busy for so long with a request that ended so.
    pub(crate) fn ended(&self, service: Service, fate: Fate, busy: Busy) {
        let counters = self.of(service);
        let add = |counter: &AtomicU64, time: Duration| {
            counter.fetch_add(time.as_micros() as u64, Relaxed);
        };
        add(&counters.busy_us, busy.all);
        if let Some(in_vain) = busy.in_vain {
            add(&counters.busy_us_departed, busy.all);
            add(&counters.busy_us_in_vain, in_vain);
        }
        let count = match fate {
            Fate::Refused => &counters.refused,
            Fate::Served => &counters.served,
            Fate::Orphaned => &counters.orphaned,
            Fate::Cancelled => &counters.cancelled,
            Fate::Failed => &counters.failed,
        };
        count.fetch_add(1, Relaxed);
    }

    /// For whoever sees a client depart.
    pub(crate) const fn departures(&self) -> &AtomicU64 {
        &self.departed
    }

    /// The database was there, or it was not.
    pub(crate) fn met_database(&self, is_there: bool) {
        self.is_away.store(!is_there, Relaxed);
        if !is_there {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Counts a worker as running until the guard is dropped.
    pub(crate) fn run(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running(&self.running)
    }

    /// A reading of one service.
    pub(crate) fn service(&self, service: Service) -> ServiceStats {
        let counters = self.of(service);
        ServiceStats {
            received: counters.received.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            served: counters.served.load(Relaxed),
            orphaned: counters.orphaned.load(Relaxed),
            cancelled: counters.cancelled.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            busy_us: counters.busy_us.load(Relaxed),
            busy_us_departed: counters.busy_us_departed.load(Relaxed),
            busy_us_in_vain: counters.busy_us_in_vain.load(Relaxed),
        }
    }

    /// Workers running now.
    pub(crate) fn running_now(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Clients departed so far.
    pub(crate) fn departed_so_far(&self) -> u64 {
        self.departed.load(Relaxed)
    }

    /// Whether the database was there when it was last asked, and how often it was not.
    pub(crate) fn database(&self) -> (bool, u64) {
        (!self.is_away.load(Relaxed), self.lost.load(Relaxed))
    }

    fn of(&self, service: Service) -> &ServiceCounters {
        &self.services[service.index()]
    }
}

/// One running worker.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
