//! A concurrency limit with partitions, whose shares apply only when the limit is reached.
//!
//! Source: Netflix concurrency-limits, `AbstractPartitionedLimiter`. A request is refused if the
//! limit is reached *and* its partition already has its share. A small partition may therefore use
//! capacity that others leave, and a partition below its share is admitted above the limit.
//! Requests admitted beyond the number of workers wait in the server, oldest first regardless of
//! partition.
//!
//! Simplifications: The limit is fixed (`places` more than the number of workers), because the
//! library's adaptive limits are not the subject here. There are two partitions: the paths of
//! transactions, and all other paths. A partition's share is counted over waiting requests, because
//! a queueing policy does not learn which requests run.

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::{Push, QueueView, Scheduler};
use bywash_engine::{Class, Reason, RequestId, Tier};
use bywash_units::Ratio;

use super::tiers;

/// The policy of a partitioned concurrency limit.
pub(super) const POLICY: Policy = Policy {
    name: "partitions",
    source: "Netflix concurrency-limits",
    about: "A short backlog; when it is full, transactions and browsing keep to their shares.",
    parameters: &[
        Parameter {
            name: "places",
            domain: Domain::Count { min: 1, max: 1_000_000, default: 8 },
            why: "How far the limit is above the number of requests that the servers run.",
        },
        Parameter {
            name: "transaction_share",
            domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.5 },
            why: "The share of transaction paths; browsing gets the rest.",
        },
    ],
    build: |settings, classes| Box::new(Partitions::new(settings, classes)),
};

#[derive(Debug)]
struct Partitions {
    tiers: Vec<Tier>,
    places: usize,
    transaction_share: Ratio,
}

impl Partitions {
    fn new(settings: &Settings, classes: &[Class]) -> Self {
        Self {
            tiers: tiers(classes),
            places: settings.count("places") as usize,
            transaction_share: settings.share("transaction_share"),
        }
    }

    /// Returns the number of waiting requests of `tier`, and the maximum number of them while the
    /// limit is reached.
    fn share_of(&self, moment: &QueueView<'_>, tier: Tier) -> (u32, f64) {
        let classes = (0..self.tiers.len()).filter(|class| self.tiers[*class] == tier);
        let waiting = classes.map(|class| moment.length_of(class)).sum();
        let share = match tier {
            Tier::Transaction => self.transaction_share.get(),
            Tier::Browsing => 1.0 - self.transaction_share.get(),
        };
        (waiting, (share * self.places as f64).ceil().max(1.0))
    }
}

impl Scheduler for Partitions {
    fn push(&mut self, moment: &QueueView<'_>, id: RequestId) -> Push {
        let tier = self.tiers[moment.waiting(id).class.index()];
        let (waiting, share) = self.share_of(moment, tier);
        if moment.length() >= self.places && f64::from(waiting) >= share {
            return Push::Refused(Reason::QueueFull);
        }
        Push::Queued
    }

    fn pop(&mut self, moment: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        moment.oldest().map(|id| (id, Reason::Best))
    }

    fn lifo(&self) -> bool {
        false
    }
}
