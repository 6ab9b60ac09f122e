//! Metrics by service level. Without `[levels]` in the configuration they have no samples.

use bywash_engine::Outcome;
use bywash_units::TimeSpan;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::durations::Durations;
use super::labels::CustomerLevel;
use super::{Labels, labelled, table};

/// The families of metrics that have a label for the level.
pub(super) struct LevelFamilies {
    outcomes: Family<Labels, Counter>,
    response: Family<Labels, Durations>,
    waiting: Family<Labels, Gauge>,
    running: Family<Labels, Gauge>,
    /// The numbers of requests since the start, by what they say about their customer's level.
    customers: Vec<Counter>,
}

/// The metrics of one level. A request counts as waiting from its arrival, then as running, and
/// after its end as neither.
#[derive(Clone)]
pub(crate) struct LevelMetrics {
    outcomes: Vec<Counter>,
    response: Durations,
    waiting: Gauge,
    running: Gauge,
}

impl LevelFamilies {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let this = Self {
            customers: labelled(registry, &table::CUSTOMER_LEVELS),
            outcomes: Family::default(),
            response: Family::default(),
            waiting: Family::default(),
            running: Family::default(),
        };
        table::LEVEL_REQUESTS.register(registry, this.outcomes.clone());
        table::LEVEL_RESPONSE_SECONDS.register(registry, this.response.clone());
        table::LEVEL_WAITING.register(registry, this.waiting.clone());
        table::LEVEL_RUNNING.register(registry, this.running.clone());
        this
    }

    pub(super) fn count_customer_level(&self, level: CustomerLevel) {
        if let Some(number) = level.number() {
            self.customers[number].inc();
        }
    }

    pub(super) fn level(&self, name: &str) -> LevelMetrics {
        let level = || ("level", name.to_owned());
        let outcome = |outcome: &Outcome| {
            let labels = vec![level(), ("outcome", outcome.name().to_owned())];
            self.outcomes.get_or_create(&labels).clone()
        };
        LevelMetrics {
            outcomes: Outcome::ALL.iter().map(outcome).collect(),
            response: self.response.get_or_create(&vec![level()]).clone(),
            waiting: self.waiting.get_or_create(&vec![level()]).clone(),
            running: self.running.get_or_create(&vec![level()]).clone(),
        }
    }
}

impl LevelMetrics {
    /// Counts a request that has arrived as waiting.
    pub(crate) fn arrived(&self) {
        self.waiting.inc();
    }

    /// Counts a waiting request as running.
    pub(crate) fn started(&self) {
        self.waiting.dec();
        self.running.inc();
    }

    /// Counts a request that has ended. `ran` says whether it was running before, and not waiting.
    /// `response` is the time since its arrival.
    pub(crate) fn ended(&self, outcome: Outcome, ran: bool, response: TimeSpan) {
        if ran { &self.running } else { &self.waiting }.dec();
        self.outcomes[outcome as usize].inc();
        if matches!(outcome, Outcome::Served | Outcome::Late) {
            self.response.observe(response);
        }
    }
}
