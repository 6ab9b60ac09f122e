//! A concurrency limit with partitions: shares that count only once the limit is hit.
//!
//! Source: Netflix concurrency-limits, `AbstractPartitionedLimiter`.
//! A request is refused if the limit is reached *and* its partition has its share already; so a
//! small partition may use what others leave, and one below its share is let in above the limit. What
//! is let in beyond the workers waits in the server, oldest first whatever its partition.
//!
//! Simplified: the limit is fixed (`places` beyond the workers; the library's limits that adapt are
//! another matter), the partitions are transaction paths and the rest, and a partition's share is
//! counted over those who wait, as an order does not hear who runs.

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::{Moment, Order, Push};
use bywash_engine::{Class, Reason, RequestId, Tier};
use bywash_units::Share;

use super::tiers;

/// A partitioned concurrency limit.
pub(super) const POLICY: Policy = Policy {
    name: "partitions",
    source: "Netflix concurrency-limits",
    about: "A short backlog; when it is full, transactions and browsing keep to their shares.",
    parameters: &[
        Parameter {
            name: "places",
            domain: Domain::Count { min: 1, max: 1_000_000, default: 8 },
            why: "How much the limit is above what the servers run at once.",
        },
        Parameter {
            name: "transact",
            domain: Domain::Share { min: 0.0, max: 1.0, default: 0.5 },
            why: "The share of transaction paths; browsing has the rest.",
        },
    ],
    build: |settings, classes| Box::new(Partitions::new(settings, classes)),
};

#[derive(Debug)]
struct Partitions {
    tiers: Vec<Tier>,
    places: usize,
    transact: Share,
}

impl Partitions {
    fn new(settings: &Settings, classes: &[Class]) -> Self {
        Self {
            tiers: tiers(classes),
            places: settings.count("places") as usize,
            transact: settings.share("transact"),
        }
    }

    /// How many of `tier` wait, and how many may when the limit is reached.
    fn share_of(&self, moment: &Moment<'_>, tier: Tier) -> (u32, f64) {
        let classes = (0..self.tiers.len()).filter(|class| self.tiers[*class] == tier);
        let waiting = classes.map(|class| moment.length_of(class)).sum();
        let share = match tier {
            Tier::Transact => self.transact.get(),
            Tier::Browse => 1.0 - self.transact.get(),
        };
        (waiting, (share * self.places as f64).ceil().max(1.0))
    }
}

impl Order for Partitions {
    fn push(&mut self, moment: &Moment<'_>, id: RequestId) -> Push {
        let tier = self.tiers[moment.waiting(id).class.index()];
        let (waiting, share) = self.share_of(moment, tier);
        if moment.length() >= self.places && f64::from(waiting) >= share {
            return Push::Refused(Reason::QueueFull);
        }
        Push::Queued
    }

    fn pop(&mut self, moment: &Moment<'_>) -> Option<(RequestId, Reason)> {
        moment.oldest().map(|id| (id, Reason::Best))
    }

    fn newest_first(&self) -> bool {
        false
    }
}
