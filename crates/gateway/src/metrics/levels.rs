//! What is counted by level. Without `[levels]` no level is a label, so there are no samples of any.

use bywash_engine::Outcome;
use bywash_units::Span;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::durations::Durations;
use super::{Labels, labelled};
use crate::levels::Said;

/// The families of metrics that have a label for the level.
pub(super) struct LevelFamilies {
    outcomes: Family<Labels, Counter>,
    response: Family<Labels, Durations>,
    waiting: Family<Labels, Gauge>,
    running: Family<Labels, Gauge>,
    /// By what is said of customers.
    customers: Vec<Counter>,
}

/// What is counted of one level. A request is first among those that wait, then among those that run,
/// then gone.
#[derive(Clone)]
pub(crate) struct LevelMetrics {
    outcomes: Vec<Counter>,
    response: Durations,
    waiting: Gauge,
    running: Gauge,
}

impl LevelFamilies {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let customers = labelled(
            registry,
            ("bywash_customer_levels", "what"),
            "Requests that name their customer's level: a known one, something else, or by somebody who is not believed",
            Said::NAMES.into_iter(),
        );
        let this = Self {
            customers,
            outcomes: Family::default(),
            response: Family::default(),
            waiting: Family::default(),
            running: Family::default(),
        };
        let help = "Requests by level and by what became of them";
        registry.register("bywash_level_requests", help, this.outcomes.clone());
        let help = "Time from arrival until the whole answer was handed to the client's connection, of requests that the application answered";
        registry.register("bywash_level_response_seconds", help, this.response.clone());
        let help = "Requests of the level that have come and do not run";
        registry.register("bywash_level_waiting", help, this.waiting.clone());
        let help = "Requests of the level that the application works on, streams among them";
        registry.register("bywash_level_running", help, this.running.clone());
        this
    }

    pub(super) fn customer_said(&self, said: Said) {
        if let Some(number) = said.number() {
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
    /// A request has come.
    pub(crate) fn arrived(&self) {
        self.waiting.inc();
    }

    /// It runs.
    pub(crate) fn started(&self) {
        self.waiting.dec();
        self.running.inc();
    }

    /// It has ended, so long after it came; `ran` if it was started.
    pub(crate) fn ended(&self, outcome: Outcome, ran: bool, response: Span) {
        if ran { &self.running } else { &self.waiting }.dec();
        self.outcomes[outcome as usize].inc();
        if matches!(outcome, Outcome::Served | Outcome::Late) {
            self.response.observe(response);
        }
    }
}
