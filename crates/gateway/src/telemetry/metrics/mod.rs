//! Counters, gauges and histograms in the text format of Prometheus.
//!
//! All metrics are declared in `table`, and only those are registered.
//!
//! The value of every label is from a fixed list or from the configuration: a class, a level, a
//! server, an outcome, a reason or the like. So the configuration bounds the number of time series.
//! Handles are looked up once, at start. For a request, only atomic variables are changed.

mod class;
mod config;
mod durations;
mod gauges;
mod labels;
mod latencies;
mod levels;
mod runtime;
mod servers;
mod snapshot;
mod table;

use std::fmt::Error;

use bywash_config::{Config, Mode};
use bywash_message::ParseError;
use bywash_metrics::Metric;
use bywash_sense::Process;
use bywash_tls::Expiry;
use bywash_token::Refusal;
use http::StatusCode;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::connections::Evicted;
use crate::driver::LockTimes;
use crate::elephants::NoLane;
use crate::process::local_fault::LocalFault;
use crate::process::panics::Thread;
use crate::telemetry::orphans::Counts;

pub(crate) use self::class::ClassMetrics;
use self::class::{Families, Responses};
use self::config::ConfigMetrics;
use self::gauges::Gauges;
pub(crate) use self::labels::{
    CustomerLevel, Doubt, Flood, Handshake, NameFailure, NotOpened, Unread,
};
use self::levels::LevelFamilies;
pub(crate) use self::levels::LevelMetrics;
use self::runtime::RuntimeMetrics;
use self::servers::ServerFamilies;
pub(crate) use self::servers::{ServerState, ServerStatus, Traffic};
pub use self::table::METRICS;

type Labels = Vec<(&'static str, String)>;

pub(crate) struct Metrics {
    registry: Registry,
    families: Families,
    /// The counts of answers to messages that are not valid requests.
    classless: Responses,
    levels: LevelFamilies,
    malformed: Vec<Counter>,
    doubts: Vec<Counter>,
    not_opened: Vec<Counter>,
    handshakes: Vec<Counter>,
    floods: Vec<Counter>,
    tokens_refused: Vec<Counter>,
    tokens_good: Counter,
    signatures: Vec<Counter>,
    tokens_given: Counter,
    files_skipped: Counter,
    files_forgotten: Counter,
    too_slow: Counter,
    refused_connections: Counter,
    evicted: Vec<Counter>,
    failed_accepts: Vec<Counter>,
    local_faults: Vec<Counter>,
    failed_watches: Counter,
    panics: Vec<Counter>,
    worker_restarts: Counter,
    failed_names: Vec<Counter>,
    dropped_spans: Counter,
    throttled_answers: Vec<Counter>,
    orphans: Counts,
    gauges: Gauges,
    servers: ServerFamilies,
    config: ConfigMetrics,
    runtime: RuntimeMetrics,
}

/// Registers the counters of requests that are reported to the stop daemon.
fn orphans(registry: &mut Registry) -> Counts {
    Counts {
        reported: counter(registry, &table::ORPHANS_REPORTED),
        lost: counter(registry, &table::ORPHANS_LOST),
        refused: counter(registry, &table::ORPHANS_REFUSED),
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let registry = &mut Registry::default();
        let tokens = labelled(registry, &table::TOKENS);
        let (given_and_good, tokens_refused) = tokens.split_at(2);
        let families = Families::register(registry);
        Self {
            classless: families.classless(),
            families,
            levels: LevelFamilies::register(registry),
            tokens_given: given_and_good[0].clone(),
            tokens_good: given_and_good[1].clone(),
            tokens_refused: tokens_refused.to_vec(),
            signatures: labelled(registry, &table::AGENT_SIGNATURES),
            malformed: labelled(registry, &table::MALFORMED_MESSAGES),
            doubts: labelled(registry, &table::IGNORED_FORWARDING_FIELDS),
            not_opened: labelled(registry, &table::CONNECTIONS_NOT_OPENED),
            handshakes: labelled(registry, &table::TLS_HANDSHAKES),
            floods: labelled(registry, &table::HTTP2_FLOODS),
            files_skipped: counter(registry, &table::FILES),
            files_forgotten: counter(registry, &table::FILES_FORGOTTEN),
            too_slow: counter(registry, &table::SLOW_CLIENTS),
            refused_connections: counter(registry, &table::REFUSED_CONNECTIONS),
            evicted: labelled(registry, &table::EVICTED_CONNECTIONS),
            failed_accepts: labelled(registry, &table::FAILED_ACCEPTS),
            local_faults: labelled(registry, &table::LOCAL_FAULTS),
            failed_watches: counter(registry, &table::FAILED_WATCHES),
            panics: labelled(registry, &table::PANICS),
            worker_restarts: counter(registry, &table::WORKER_RESTARTS),
            failed_names: labelled(registry, &table::FAILED_NAMES),
            dropped_spans: counter(registry, &table::DROPPED_SPANS),
            throttled_answers: labelled(registry, &table::THROTTLED_ANSWERS),
            orphans: orphans(registry),
            gauges: Gauges::register(registry),
            servers: ServerFamilies::register(registry),
            config: ConfigMetrics::register(registry),
            runtime: RuntimeMetrics::register(registry),
            registry: std::mem::take(registry),
        }
    }

    /// Sets the metrics that depend on the configuration `config`, which is in force now or will be
    /// in a moment.
    pub(crate) fn configured(&self, config: &Config) {
        self.families.set_tiers(&config.classes);
        self.gauges.set_bounds(&config.engine.limit);
    }

    /// Returns the counters of a class. Every call for one name returns the same counters.
    pub(crate) fn class(&self, name: &str, mode: Mode, enforce_percent: u8) -> ClassMetrics {
        self.families.class(name, mode, enforce_percent)
    }

    /// Returns the counters of a level. Every call for one name returns the same counters.
    pub(crate) fn level(&self, name: &str) -> LevelMetrics {
        self.levels.level(name)
    }

    /// Counts what a request says about its customer's level.
    pub(crate) fn count_customer_level(&self, level: CustomerLevel) {
        self.levels.count_customer_level(level);
    }

    pub(crate) fn malformed(&self, error: ParseError) {
        self.malformed[error as usize].inc();
    }

    /// Counts an answer with this status to a message that is not a valid request.
    pub(crate) fn message_refused(&self, status: StatusCode) {
        self.classless.count(status, false);
    }

    /// Counts a forwarding field of a trusted hop that is not believed.
    pub(crate) fn forwarding_doubted(&self, doubt: Doubt) {
        self.doubts[doubt as usize].inc();
    }

    pub(crate) fn not_opened(&self, why: NotOpened) {
        self.not_opened[why as usize].inc();
    }

    pub(crate) fn handshake_ended(&self, how: Handshake) {
        self.handshakes[how.number()].inc();
    }

    pub(crate) fn flooded(&self, flood: Flood) {
        self.floods[flood as usize].inc();
    }

    /// Counts a token of a request, as valid or by the reason why it is not.
    pub(crate) fn token_brought(&self, worth: Result<(), Refusal>) {
        match worth {
            Ok(()) => self.tokens_good.inc(),
            Err(refusal) => self.tokens_refused[refusal as usize].inc(),
        };
    }

    /// Counts the signature of a request, as valid or by the reason why it proves nothing. `None`
    /// means that it was not verified.
    pub(crate) fn signature_verified(&self, result: Option<Result<(), bywash_agents::Refusal>>) {
        self.signatures[match result {
            Some(Ok(())) => 0,
            None => 1,
            Some(Err(refusal)) => 2 + refusal as usize,
        }]
        .inc();
    }

    pub(crate) fn token_given(&self) {
        self.tokens_given.inc();
    }

    /// Counts a request for a file that runs without a slot.
    pub(crate) fn file_skipped(&self) {
        self.files_skipped.inc();
    }

    /// Counts a known file that another target has displaced from the table.
    pub(crate) fn file_forgotten(&self) {
        self.files_forgotten.inc();
    }

    /// Counts an answer whose bytes are throttled. With `None`, a lane throttles the answer.
    /// Otherwise a bucket does, and `why` is the reason why there is no lane.
    pub(crate) fn throttled_answer(&self, why: Option<NoLane>) {
        self.throttled_answers[why.map_or(0, |why| 1 + why.number())].inc();
    }

    pub(crate) fn too_slow(&self) {
        self.too_slow.inc();
    }

    pub(crate) fn connection_refused(&self) {
        self.refused_connections.inc();
    }

    pub(crate) fn evicted(&self, why: Evicted) {
        self.evicted[why as usize].inc();
    }

    /// Counts a client connection that could not be accepted, by the local fault. `None` means that
    /// no local resource was missing.
    pub(crate) fn accept_failed(&self, fault: Option<LocalFault>) {
        let place = table::ACCEPT_FAULTS.iter().position(|known| *known == fault);
        self.failed_accepts[place.unwrap_or_default()].inc();
    }

    pub(crate) fn local_fault(&self, fault: LocalFault) {
        self.local_faults[fault as usize].inc();
    }

    pub(crate) fn watch_failed(&self) {
        self.failed_watches.inc();
    }

    /// Returns the counter of panics in threads of this kind.
    pub(crate) fn panics(&self, thread: Thread) -> Counter {
        self.panics[thread as usize].clone()
    }

    pub(crate) fn worker_restarted(&self) {
        self.worker_restarts.inc();
    }

    /// Counts a failed look-up of a server's name.
    pub(crate) fn name_failed(&self, cause: NameFailure) {
        self.failed_names[cause as usize].inc();
    }

    pub(crate) const fn orphans(&self) -> &Counts {
        &self.orphans
    }

    pub(crate) const fn dropped_spans(&self) -> &Counter {
        &self.dropped_spans
    }

    pub(crate) const fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Replaces the metrics of the servers with their present values.
    pub(crate) fn set_servers<'a>(
        &self,
        servers: impl Iterator<Item = ((&'a bywash_config::Server, ServerStatus), &'a Traffic)>,
    ) {
        self.servers.set(servers);
    }

    /// Counts a reload of the configuration, by its result.
    pub(crate) fn reloaded(&self, successfully: bool) {
        self.config.reloaded(successfully);
    }

    /// Replaces the metrics of the configuration in force. `since` is the wall-clock time at which
    /// it came into force, in seconds since 1970.
    pub(crate) fn set_config(&self, hash: &str, since: i64, expiries: &[Expiry]) {
        self.config.set(hash, since, expiries);
    }

    /// Replaces the metrics of the process and of the engine's lock with their present values.
    pub(crate) fn set_runtime(&self, process: Option<Process>, lock: &LockTimes) {
        self.runtime.set(process, lock);
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(crate) fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Registers one counter for each value of the metric's label. Returns the counters in the order of
/// [`Metric::words`].
fn labelled(registry: &mut Registry, metric: &Metric) -> Vec<Counter> {
    let family = Family::<Labels, Counter>::default();
    metric.register(registry, family.clone());
    let label = metric.labels[0].name;
    let of_word = |word: &str| family.get_or_create(&vec![(label, word.to_owned())]).clone();
    metric.words().into_iter().map(of_word).collect()
}

fn counter(registry: &mut Registry, metric: &Metric) -> Counter {
    let counter = Counter::default();
    metric.register(registry, counter.clone());
    counter
}
