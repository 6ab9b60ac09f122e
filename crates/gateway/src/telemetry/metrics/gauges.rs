//! Metrics whose values are not counted here. They are read from the gateway at a scrape, or follow
//! from the configuration.

use std::sync::atomic::Ordering;

use bywash_engine::Evictions;
use bywash_engine::catalog::LimitSettings;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Labels, table};
use crate::process::memory::Level;

/// A counter whose value is counted elsewhere and copied at a scrape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Total(Counter);

impl Total {
    pub(crate) fn set(&self, count: i64) {
        self.0.inner().store(count.unsigned_abs(), Ordering::Relaxed);
    }
}

/// The metrics whose values are read from the gateway at a scrape.
#[derive(Clone, Default)]
pub(crate) struct Gauges {
    pub(crate) limit: Gauge,
    limit_least: Gauge,
    limit_most: Gauge,
    pub(crate) running: Gauge,
    pub(crate) throttled_waiting: Gauge,
    pub(crate) lanes: Gauge,
    pub(crate) lifo: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) sessions: Gauge,
    sessions_evicted: [Total; 2],
    sessions_over_quota: Total,
    pub(crate) draining: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) uploads: Gauge,
    pub(crate) departed: Gauge,
    pub(crate) log_dropped: Total,
    pub(crate) tap_missed: Total,
    pub(crate) bypassed: Gauge,
    pub(crate) decisions_unwritten: Gauge,
    pub(crate) state_unreadable: Gauge,
    pub(crate) stderr_dropped: Total,
    pub(crate) memory_used: Gauge,
    pub(crate) memory_budget: Gauge,
    pub(crate) fleet_connected: Gauge,
    pub(crate) fleet_share: Gauge,
    pub(crate) fleet_differences: Gauge,
    pub(crate) fleet_gateways: Gauge,
    pub(crate) fleet_ignored: Total,
    memory_level: Vec<Gauge>,
}

impl Gauges {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let mut this = Self::default();
        for (metric, gauge) in [
            (&table::LIMIT, &this.limit),
            (&table::LIMIT_LEAST, &this.limit_least),
            (&table::LIMIT_MOST, &this.limit_most),
            (&table::RUNNING, &this.running),
            (&table::THROTTLED_WAITING, &this.throttled_waiting),
            (&table::LANES, &this.lanes),
            (&table::LIFO, &this.lifo),
            (&table::CONNECTIONS, &this.connections),
            (&table::STREAMS, &this.streams),
            (&table::UPLOADS, &this.uploads),
            (&table::DEPARTED, &this.departed),
            (&table::BYPASSED, &this.bypassed),
            (&table::DECISIONS_UNWRITTEN, &this.decisions_unwritten),
            (&table::STATE_UNREADABLE, &this.state_unreadable),
            (&table::MEMORY_USED, &this.memory_used),
            (&table::MEMORY_BUDGET, &this.memory_budget),
            (&table::FLEET_CONNECTED, &this.fleet_connected),
            (&table::FLEET_SHARE, &this.fleet_share),
            (&table::FLEET_DIFFERENCES, &this.fleet_differences),
            (&table::FLEET_GATEWAYS, &this.fleet_gateways),
            (&table::SESSIONS, &this.sessions),
            (&table::DRAINING, &this.draining),
        ] {
            metric.register(registry, gauge.clone());
        }
        this.memory_level = levels(registry);
        table::FLEET_IGNORED.register(registry, this.fleet_ignored.0.clone());
        table::TAP_MISSED.register(registry, this.tap_missed.0.clone());
        table::STDERR_DROPPED.register(registry, this.stderr_dropped.0.clone());
        let evicted = Family::<Labels, Counter>::default();
        table::SESSIONS_EVICTED.register(registry, evicted.clone());
        this.sessions_evicted = table::SEGMENTS.map(|segment| {
            Total(evicted.get_or_create(&vec![("segment", segment.to_owned())]).clone())
        });
        table::SESSIONS_OVER_QUOTA.register(registry, this.sessions_over_quota.0.clone());
        table::ACCESS_LOG_DROPPED.register(registry, this.log_dropped.0.clone());
        this
    }

    pub(crate) fn set_evictions(&self, evictions: Evictions) {
        let Evictions { fresh, proven, over_quota } = evictions;
        let [of_fresh, of_proven] = &self.sessions_evicted;
        for (total, count) in
            [(of_fresh, fresh), (of_proven, proven), (&self.sessions_over_quota, over_quota)]
        {
            total.0.inner().store(count, Ordering::Relaxed);
        }
    }

    /// Sets the gauge of the present memory level to 1, and those of the other levels to 0.
    pub(crate) fn set_memory_level(&self, now: Level) {
        for (level, gauge) in Level::ALL.iter().zip(&self.memory_level) {
            gauge.set(i64::from(*level == now));
        }
    }

    /// Sets the minimum and the maximum of the concurrency limit.
    pub(super) fn set_bounds(&self, limit: &LimitSettings) {
        let bounds = limit.bounds();
        self.limit_least.set(i64::from(*bounds.start()));
        self.limit_most.set(i64::from(*bounds.end()));
    }
}

/// Registers one gauge for each memory level, in the order of [`Level::ALL`].
fn levels(registry: &mut Registry) -> Vec<Gauge> {
    let family = Family::<Labels, Gauge>::default();
    table::MEMORY_LEVEL.register(registry, family.clone());
    let of_word = |word: &str| family.get_or_create(&vec![("state", word.to_owned())]).clone();
    table::MEMORY_LEVEL.words().into_iter().map(of_word).collect()
}
