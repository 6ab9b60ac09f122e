//! The counters and histograms of each class.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bywash_config::{ClassConfig, Mode};
use bywash_engine::{Class, Outcome, Reason, Standing};
use bywash_history::{ClassCounts, Shadowed};
use bywash_units::{TimeSpan, Utility};
use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::Unread;
use super::latencies::LiveLatencies;
use super::{Labels, table};
use crate::telemetry::request_log::Verdict;

/// A total of fractional values, such as seconds.
type Amount = Counter<f64, AtomicU64>;

/// The counters and histograms of one class.
#[derive(Clone)]
pub(crate) struct ClassMetrics {
    outcomes: Vec<Counter>,
    responses: Responses,
    /// The number of requests whose client left before they ran.
    left_waiting: Counter,
    /// The counts of decisions, indexed by mode: observe, enforce.
    decisions: [Decisions; 2],
    standings: Vec<Counter>,
    shadow: Vec<Counter>,
    useful: Amount,
    wasted: Amount,
    latencies: Arc<LiveLatencies>,
    wait: Histogram,
    service: Histogram,
    waiting: Gauge,
    revenue: Amount,
    success_unread: Vec<Counter>,
}

/// The counts of decisions in one mode, by reason. They are registered at the first decision, or at
/// once if the class can have that mode.
#[derive(Clone)]
struct Decisions {
    family: Family<Labels, Counter>,
    class: String,
    mode: Mode,
    counters: Arc<OnceLock<(Vec<Counter>, Counter)>>,
}

impl Decisions {
    fn counters(&self) -> &(Vec<Counter>, Counter) {
        self.counters.get_or_init(|| {
            let decision = |reason: &str| {
                let mode = ("mode", self.mode.name().to_owned());
                let labels =
                    vec![("class", self.class.clone()), mode, ("reason", reason.to_owned())];
                self.family.get_or_create(&labels).clone()
            };
            let reasons = Reason::ALL.iter().map(|reason| decision(reason.name()));
            (reasons.collect(), decision(table::STILL_WAITING))
        })
    }
}

impl ClassMetrics {
    /// Counts a request that has ended. `wait` is its time in the queue, and `service` the time
    /// that it ran; `None` if it never ran.
    pub(crate) fn ended(&self, outcome: Outcome, wait: TimeSpan, service: Option<TimeSpan>) {
        self.outcomes[outcome as usize].inc();
        self.wait.observe(wait.as_secs_f64());
        if let Some(service) = service {
            self.service.observe(service.as_secs_f64());
            let work = if outcome == Outcome::Served { &self.useful } else { &self.wasted };
            work.inc_by(service.as_secs_f64());
            if matches!(outcome, Outcome::Served | Outcome::Late) {
                self.latencies.count(wait + service);
            }
        } else if outcome == Outcome::Orphaned {
            self.left_waiting.inc();
        }
    }

    /// Adds `time` to the wasted work. The application worked on for that time after the client had
    /// left.
    pub(crate) fn worked_for_nobody(&self, time: TimeSpan) {
        self.wasted.inc_by(time.as_secs_f64());
    }

    /// Counts the standing of a request's session. `None` means that the request was not submitted
    /// to the engine: it is not counted.
    pub(crate) fn stood(&self, standing: Option<Standing>) {
        if let Some(standing) = standing {
            self.standings[standing as usize].inc();
        }
    }

    /// Returns the number of requests since the start whose session had this standing.
    pub(crate) fn standing(&self, standing: Standing) -> u64 {
        self.standings[standing as usize].get()
    }

    /// Counts an answer with this status. `by_upstream` says whether it came from the application
    /// and not from the gateway.
    pub(crate) fn responded(&self, status: StatusCode, by_upstream: bool) {
        self.responses.count(status, by_upstream);
    }

    /// Counts a request that was only observed, by what the engine would have done with it.
    pub(crate) fn observed(&self, verdict: Verdict) {
        let would = match verdict {
            Verdict::None => return,
            Verdict::Run(..) => Shadowed::Run,
            Verdict::Shed(..) => Shadowed::Refused,
            Verdict::Stop(..) => Shadowed::Stopped,
            Verdict::StillWaiting => Shadowed::Waiting,
        };
        self.shadow[would as usize].inc();
    }

    /// Returns all counts of the class, for the history. `waiting` is the number of requests that
    /// wait now, and `may_run` the time after which the engine stops a running request.
    pub(crate) fn counts(
        &self,
        name: &Arc<str>,
        waiting: u32,
        may_run: Option<TimeSpan>,
    ) -> ClassCounts {
        let milliseconds = |amount: &Amount| (amount.get() * 1e3) as u64;
        ClassCounts {
            name: Arc::clone(name),
            outcomes: core::array::from_fn(|at| self.outcomes[at].get()),
            shadow: core::array::from_fn(|at| self.shadow[at].get()),
            left_waiting: self.left_waiting.get(),
            useful: milliseconds(&self.useful),
            wasted: milliseconds(&self.wasted),
            revenue: self.revenue.get(),
            latencies: self.latencies.read(),
            waiting,
            may_run,
        }
    }

    /// Counts the decision about a request that was treated in this mode. In mode `observe` the
    /// decision was not carried out.
    pub(crate) fn decided(&self, mode: Mode, verdict: Verdict) {
        let (reasons, still_waiting) = self.decisions[mode as usize].counters();
        match verdict {
            Verdict::None => {}
            Verdict::Run(reason, _) | Verdict::Shed(reason, _) | Verdict::Stop(reason, _) => {
                reasons[reason as usize].inc();
            }
            Verdict::StillWaiting => {
                still_waiting.inc();
            }
        }
    }

    /// Adds the revenue of an answer to the total of the class.
    pub(crate) fn add_revenue(&self, revenue: Utility) {
        if revenue > Utility::default() {
            self.revenue.inc_by(revenue.get());
        }
    }

    /// Counts an answer whose JSON body could not be examined, so that it is not a success.
    pub(crate) fn success_unread(&self, why: Unread) {
        self.success_unread[why as usize].inc();
    }

    /// Returns the number of requests since the start with this outcome.
    pub(crate) fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].get()
    }

    pub(crate) fn set_waiting(&self, waiting: u32) {
        self.waiting.set(i64::from(waiting));
    }
}

/// The counts of answers to clients, by source and by class of status. The gateway's own answers
/// are 4xx and 5xx only.
#[derive(Clone)]
pub(super) struct Responses {
    upstream: [Counter; 5],
    gateway: [Counter; 2],
}

impl Responses {
    fn of(family: &Family<Labels, Counter>, class: &str) -> Self {
        let counter = |code: &str, source: &str| {
            let (code, source) = (("code", code.to_owned()), ("source", source.to_owned()));
            family.get_or_create(&vec![("class", class.to_owned()), code, source]).clone()
        };
        Self {
            upstream: table::CODES.map(|code| counter(code, table::UPSTREAM)),
            gateway: [3, 4].map(|at: usize| counter(table::CODES[at], table::GATEWAY)),
        }
    }

    pub(super) fn count(&self, status: StatusCode, by_upstream: bool) {
        // The message layer rejects statuses below 100 and above 599.
        let hundreds = usize::from(status.as_u16() / 100).clamp(1, 5);
        if by_upstream {
            self.upstream[hundreds - 1].inc();
        } else {
            self.gateway[hundreds.saturating_sub(4)].inc();
        }
    }
}

/// The upper bounds of the histograms' buckets in seconds. They reach from less than a fast answer
/// takes to longer than a client waits.
pub(super) const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

/// The families of metrics that have a label for the class.
pub(super) struct Families {
    outcomes: Family<Labels, Counter>,
    responses: Family<Labels, Counter>,
    decisions: Family<Labels, Counter>,
    standings: Family<Labels, Counter>,
    shadow: Family<Labels, Counter>,
    work: Family<Labels, Amount>,
    /// The response times of each class by name, for the history. Their buckets are finer than
    /// those of the scraped histograms.
    latencies: Mutex<HashMap<String, Arc<LiveLatencies>>>,
    wait: Family<Labels, Histogram>,
    service: Family<Labels, Histogram>,
    waiting: Family<Labels, Gauge>,
    revenue: Family<Labels, Amount>,
    success_unread: Family<Labels, Counter>,
    info: Family<Labels, Gauge>,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let this = Self {
            outcomes: Family::default(),
            responses: Family::default(),
            decisions: Family::default(),
            standings: Family::default(),
            shadow: Family::default(),
            work: Family::default(),
            latencies: Mutex::default(),
            wait: Family::new_with_constructor(histogram),
            service: Family::new_with_constructor(histogram),
            waiting: Family::default(),
            revenue: Family::default(),
            success_unread: Family::default(),
            info: Family::default(),
        };
        table::REQUESTS.register(registry, this.outcomes.clone());
        table::RESPONSES.register(registry, this.responses.clone());
        table::DECISIONS.register(registry, this.decisions.clone());
        table::STANDINGS.register(registry, this.standings.clone());
        table::SHADOW_REQUESTS.register(registry, this.shadow.clone());
        table::WORK_SECONDS.register(registry, this.work.clone());
        table::QUEUE_WAIT_SECONDS.register(registry, this.wait.clone());
        table::SERVICE_SECONDS.register(registry, this.service.clone());
        table::WAITING.register(registry, this.waiting.clone());
        table::REVENUE.register(registry, this.revenue.clone());
        table::SUCCESS_UNREAD.register(registry, this.success_unread.clone());
        table::CLASS_INFO.register(registry, this.info.clone());
        this
    }

    /// Returns the counters of answers to messages that are not valid requests. Such messages have
    /// no class.
    pub(super) fn classless(&self) -> Responses {
        Responses::of(&self.responses, table::NO_CLASS)
    }

    pub(super) fn class(&self, name: &str, mode: Mode, enforce_percent: u8) -> ClassMetrics {
        let class = || ("class", name.to_owned());
        let decisions = |of: Mode| {
            let (family, class) = (self.decisions.clone(), name.to_owned());
            let decisions = Decisions { family, class, mode: of, counters: Arc::default() };
            if of == mode || enforce_percent < 100 {
                decisions.counters();
            }
            decisions
        };
        let outcome = |outcome: &Outcome| {
            let labels = vec![class(), ("outcome", outcome.name().to_owned())];
            self.outcomes.get_or_create(&labels).clone()
        };
        let standing = |standing: &Standing| {
            let labels = vec![class(), ("standing", standing.name().to_owned())];
            self.standings.get_or_create(&labels).clone()
        };
        let shadow = |would: &Shadowed| {
            let labels = vec![class(), ("would", would.name().to_owned())];
            self.shadow.get_or_create(&labels).clone()
        };
        let unread = |why: &Unread| {
            let labels = vec![class(), ("cause", why.name().to_owned())];
            self.success_unread.get_or_create(&labels).clone()
        };
        let work =
            |kind: &str| self.work.get_or_create(&vec![class(), ("kind", kind.to_owned())]).clone();
        ClassMetrics {
            outcomes: Outcome::ALL.iter().map(outcome).collect(),
            responses: Responses::of(&self.responses, name),
            left_waiting: Counter::default(),
            decisions: [decisions(Mode::Observe), decisions(Mode::Enforce)],
            standings: Standing::ALL.iter().map(standing).collect(),
            shadow: Shadowed::ALL.iter().map(shadow).collect(),
            useful: work(table::USEFUL),
            wasted: work(table::WASTED),
            latencies: self.latencies(name),
            wait: self.wait.get_or_create(&vec![class()]).clone(),
            service: self.service.get_or_create(&vec![class()]).clone(),
            waiting: self.waiting.get_or_create(&vec![class()]).clone(),
            revenue: self.revenue.get_or_create(&vec![class()]).clone(),
            success_unread: Unread::ALL.iter().map(unread).collect(),
        }
    }

    /// Sets the tier of each class of the configuration in force.
    pub(super) fn set_tiers(&self, classes: &[ClassConfig]) {
        self.info.clear();
        for Class { name, tier, .. } in classes.iter().map(|class| &class.class) {
            let labels = vec![("class", name.clone()), ("tier", tier.name().to_owned())];
            self.info.get_or_create(&labels).set(1);
        }
    }

    fn latencies(&self, class: &str) -> Arc<LiveLatencies> {
        let mut all = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(class.to_owned()).or_default())
    }
}
