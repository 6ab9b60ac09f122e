//! Counters and histograms in Prometheus' text format.
//!
//! Every label is a class, a level, a server, an outcome, a reason or another word from a fixed list: all
//! bounded by the configuration. Handles are looked up once, at start; a request touches atomics
//! only.

mod class;
mod durations;
mod latencies;
mod levels;

use std::fmt::Error;
use std::sync::atomic::Ordering;

use bywash_config::Mode;
use bywash_message::Fault;
use bywash_token::Refusal;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::client::{Flood, NotOpened};
use crate::elephants::NoLane;
use crate::levels::Said;
use crate::orphans::Counts;
use crate::upstream::servers::{ServerStatus, State};

pub(crate) use self::class::ClassMetrics;
use self::class::Families;
use self::levels::LevelFamilies;
pub(crate) use self::levels::LevelMetrics;

type Labels = Vec<(&'static str, String)>;

pub(crate) struct Metrics {
    registry: Registry,
    families: Families,
    levels: LevelFamilies,
    malformed: Vec<Counter>,
    not_opened: Vec<Counter>,
    floods: Vec<Counter>,
    tokens_refused: Vec<Counter>,
    tokens_good: Counter,
    tokens_given: Counter,
    too_slow: Counter,
    refused_connections: Counter,
    failed_accepts: Counter,
    failed_watches: Counter,
    dropped_spans: Counter,
    held_back: Vec<Counter>,
    orphans: Counts,
    gauges: Gauges,
    servers: ServerFamilies,
}

/// The families of metrics that have a label for the server: written anew when somebody asks, as a
/// reload may exchange the servers.
struct ServerFamilies {
    running: Family<Labels, Gauge>,
    state: Family<Labels, Gauge>,
    failures: Family<Labels, Counter>,
}

impl ServerFamilies {
    fn register(registry: &mut Registry) -> Self {
        let (running, state) = (Family::<Labels, Gauge>::default(), Family::default());
        let failures = Family::default();
        let help = "Requests at the server, streams among them";
        registry.register("bywash_server_running", help, running.clone());
        let help = "1 for the state that the server is in";
        registry.register("bywash_server_state", help, state.clone());
        let help = "Requests that the server failed: no connection, or no whole answer";
        registry.register("bywash_server_failures", help, failures.clone());
        Self { running, state, failures }
    }

    fn write(&self, name: &str, status: &ServerStatus) {
        let server = || ("server", name.to_owned());
        self.running.get_or_create(&vec![server()]).set(i64::from(status.running));
        for state in State::NAMES {
            let labels = vec![server(), ("state", state.to_owned())];
            self.state.get_or_create(&labels).set(i64::from(state == status.state.name()));
        }
        let kinds = [("connect", status.connect_failures), ("response", status.response_failures)];
        for (kind, count) in kinds {
            let labels = vec![server(), ("kind", kind.to_owned())];
            self.failures.get_or_create(&labels).inner().store(count, Ordering::Relaxed);
        }
    }
}

/// What is read off the gateway when somebody asks.
#[derive(Clone, Default)]
pub(crate) struct Gauges {
    pub(crate) limit: Gauge,
    pub(crate) running: Gauge,
    pub(crate) held: Gauge,
    pub(crate) lanes: Gauge,
    pub(crate) newest_first: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) sessions: Gauge,
    pub(crate) draining: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) log_dropped: Gauge,
    pub(crate) tap_missed: Gauge,
    pub(crate) bypassed: Gauge,
}

/// Of requests that the stop daemon is to be told of.
fn orphans(registry: &mut Registry) -> Counts {
    Counts {
        told: counter(
            registry,
            "bywash_orphans_told",
            "Requests given up while the application worked for them, of which the stop daemon was told",
        ),
        lost: counter(
            registry,
            "bywash_orphans_lost",
            "The same, of which it could not be told; is it there, at sentry.socket?",
        ),
        refused: counter(
            registry,
            "bywash_orphans_refused",
            "The same, of which it did not want to be told; is our user in sentry.stops?",
        ),
    }
}

/// Of answers whose bytes are held back.
fn held_back(registry: &mut Registry) -> Vec<Counter> {
    labelled(
        registry,
        ("bywash_held_answers", "lane"),
        "Answers whose bytes a rule holds back: by a lane of the network device (yes), or by a bucket and why",
        ["yes"].into_iter().chain(NoLane::all().map(NoLane::name)),
    )
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let families = Families::register(&mut registry);
        let malformed = labelled(
            &mut registry,
            ("bywash_malformed_messages", "fault"),
            "Messages refused as malformed; nothing of them was forwarded",
            Fault::ALL.iter().map(|fault| fault.name()),
        );
        let not_opened = labelled(
            &mut registry,
            ("bywash_connections_not_opened", "why"),
            "Connections that did not get as far as HTTP",
            NotOpened::ALL.iter().map(|why| why.name()),
        );
        let floods = labelled(
            &mut registry,
            ("bywash_http2_floods", "kind"),
            "HTTP/2 connections ended because their frames only made work",
            Flood::ALL.iter().map(|flood| flood.name()),
        );
        let tokens = labelled(
            &mut registry,
            ("bywash_tokens", "what"),
            "Session tokens: given with an answer, good, or brought to prove nothing and why",
            ["given", "good"].into_iter().chain(Refusal::ALL.iter().map(|why| why.name())),
        );
        let (given_and_good, tokens_refused) = tokens.split_at(2);
        Self {
            families,
            levels: LevelFamilies::register(&mut registry),
            tokens_given: given_and_good[0].clone(),
            tokens_good: given_and_good[1].clone(),
            tokens_refused: tokens_refused.to_vec(),
            malformed,
            not_opened,
            floods,
            too_slow: counter(
                &mut registry,
                "bywash_slow_clients",
                "Requests whose head took longer than limits.header_timeout or whose body, or answer, moved more slowly than limits.body_rate",
            ),
            refused_connections: counter(
                &mut registry,
                "bywash_refused_connections",
                "Connections closed at accept: limits.connections, limits.connections_per_address or file descriptors were used up",
            ),
            failed_accepts: counter(
                &mut registry,
                "bywash_failed_accepts",
                "Accepts that failed, for want of file descriptors most likely",
            ),
            failed_watches: counter(
                &mut registry,
                "bywash_failed_watches",
                "Workers that can no longer watch for departures; restart the gateway",
            ),
            dropped_spans: counter(
                &mut registry,
                "bywash_dropped_spans",
                "Spans that did not arrive at the collector of log.traces",
            ),
            held_back: held_back(&mut registry),
            orphans: orphans(&mut registry),
            gauges: Gauges::register(&mut registry),
            servers: ServerFamilies::register(&mut registry),
            registry,
        }
    }

    /// The counters of a class; the same ones each time it is asked for.
    pub(crate) fn class(&self, name: &str, mode: Mode, percent: u8) -> ClassMetrics {
        self.families.class(name, mode, percent)
    }

    /// The counters of a level; the same ones each time it is asked for.
    pub(crate) fn level(&self, name: &str) -> LevelMetrics {
        self.levels.level(name)
    }

    /// This is said of the customer of a request.
    pub(crate) fn customer_said(&self, said: Said) {
        self.levels.customer_said(said);
    }

    pub(crate) fn malformed(&self, fault: Fault) {
        self.malformed[fault as usize].inc();
    }

    pub(crate) fn not_opened(&self, why: NotOpened) {
        self.not_opened[why as usize].inc();
    }

    pub(crate) fn flooded(&self, flood: Flood) {
        self.floods[flood as usize].inc();
    }

    /// A request has brought a token that is good, or worth nothing.
    pub(crate) fn token_brought(&self, worth: Result<(), Refusal>) {
        match worth {
            Ok(()) => self.tokens_good.inc(),
            Err(refusal) => self.tokens_refused[refusal as usize].inc(),
        };
    }

    pub(crate) fn token_given(&self) {
        self.tokens_given.inc();
    }

    /// Bytes of an answer are held back by a lane, or by a bucket, as there is none.
    pub(crate) fn held_back(&self, why: Option<NoLane>) {
        self.held_back[why.map_or(0, |why| 1 + why.number())].inc();
    }

    pub(crate) fn too_slow(&self) {
        self.too_slow.inc();
    }

    pub(crate) fn connection_refused(&self) {
        self.refused_connections.inc();
    }

    pub(crate) fn accept_failed(&self) {
        self.failed_accepts.inc();
    }

    pub(crate) fn watch_failed(&self) {
        self.failed_watches.inc();
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

    /// Brings what is said of the servers up to date.
    pub(crate) fn set_servers<'a>(
        &self,
        servers: impl Iterator<Item = (&'a bywash_config::Server, ServerStatus)>,
    ) {
        let families = &self.servers;
        families.running.clear();
        families.state.clear();
        families.failures.clear();
        for (server, status) in servers {
            families.write(&server.to_string(), &status);
        }
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// One counter for each of a fixed list of words.
fn labelled(
    registry: &mut Registry,
    (name, label): (&str, &'static str),
    help: &str,
    words: impl Iterator<Item = &'static str>,
) -> Vec<Counter> {
    let family = Family::<Labels, Counter>::default();
    registry.register(name, help, family.clone());
    words.map(|word| family.get_or_create(&vec![(label, word.to_owned())]).clone()).collect()
}

fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    let counter = Counter::default();
    registry.register(name, help, counter.clone());
    counter
}

impl Gauges {
    fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        let mut gauge = |name: &str, help: &str, gauge: &Gauge| {
            registry.register(name, help, gauge.clone());
        };
        gauge("bywash_limit", "Slots", &this.limit);
        gauge("bywash_running", "Requests that hold a slot", &this.running);
        gauge("bywash_held", "Requests that wait under a rule for elephants", &this.held);
        gauge(
            "bywash_lanes",
            "1 while there are lanes of the device for elephants' answers",
            &this.lanes,
        );
        gauge("bywash_newest_first", "1 while newest go first: it is overload", &this.newest_first);
        gauge("bywash_connections", "Open client connections", &this.connections);
        gauge(
            "bywash_streams",
            "WebSockets and event streams, counted apart from the limit",
            &this.streams,
        );
        gauge("bywash_bypassed", "1 while no decisions are taken", &this.bypassed);
        gauge(
            "bywash_tap_missed",
            "Entries that whoever watches was too slow for",
            &this.tap_missed,
        );
        gauge("bywash_sessions", "Sessions remembered", &this.sessions);
        gauge("bywash_draining", "1 while the gateway is stopping", &this.draining);
        let help = "Lines of the access log that could not be written";
        gauge("bywash_access_log_dropped", help, &this.log_dropped);
        this
    }
}
