//! The settings in force: the configuration and the values derived from it. A reload makes a new
//! value. A request keeps the settings with which it began.

#[cfg(feature = "fleet")]
use std::collections::BTreeSet;
use std::iter::once;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use bywash_config::{ClassConfig, Config, Mode, Timeouts, Upstream};
use bywash_control::Overrides;
#[cfg(feature = "fleet")]
use bywash_engine::Class;
use bywash_engine::{ClassId, Request};
use bywash_message::Limits;
use bywash_tls::Expiry;
use bywash_units::{Time, TimeSpan};

use crate::error::GatewayError;
use crate::identity::agents::Agents;
use crate::identity::levels::Levels;
use crate::identity::session_cookie::SessionCookie;
use crate::identity::tokens::Tokens;
use crate::process::wall_clock::unix_ms;
use crate::telemetry::metrics::{ClassMetrics, Metrics};
use crate::telemetry::orphans::CancelNotifier;
use crate::telemetry::traces::Tracer;
use crate::upstream::{SharedUpstreams, Upstreams, same_servers};

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    /// The limits on the head of a request.
    pub(crate) limits: Limits,
    /// The names and counters of the classes, by class number.
    classes: Vec<Named>,
    /// The mode of each class in the configuration file, with the percentage of clients for whom it
    /// is enforced. Overrides do not change this.
    of_file: Vec<(Mode, u8)>,
    /// The time at which the configuration file was read, in milliseconds since 1970.
    pub(crate) read: u64,
    pub(crate) tls: Option<Arc<bywash_tls::Served>>,
    pub(crate) upstreams: SharedUpstreams,
    /// The session tokens; `None` if they are not configured.
    pub(crate) tokens: Option<Tokens>,
    /// The watch for the application's session cookie; `None` if sessions are not identified by
    /// one.
    pub(crate) session_cookie: Option<Arc<SessionCookie>>,
    /// The automated agents that sign their requests; `None` if there are none.
    pub(crate) agents: Option<Arc<Agents>>,
    /// The service levels; `None` if they are not configured.
    pub(crate) levels: Option<Levels>,
    /// The HTML page for a browser whose request is refused.
    pub(crate) page: Bytes,
    /// The exporter of spans; `None` if traces are off.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// The link to the stop daemon, to which the gateway reports requests that were given up.
    /// `None` if no daemon is configured.
    pub(crate) notifier: Option<Arc<CancelNotifier>>,
}

/// The counters of one class, and its name in the form that the request log stores.
#[derive(Clone)]
struct Named {
    name: Arc<str>,
    metrics: ClassMetrics,
}

/// The HTML page for refused requests if the operator has configured none.
const PAGE: &str = include_str!("busy.html");

impl Settings {
    /// Builds the settings of a configuration, and reads its certificates. Reuses those parts of
    /// `before` that have not changed.
    ///
    /// # Errors
    /// Returns an error if certificates cannot be used, or if a thread cannot be started.
    pub(crate) fn new(
        config: Config,
        metrics: &Metrics,
        now: Time,
        before: Option<&Self>,
    ) -> Result<Self, GatewayError> {
        let kept = before.filter(|before| same_servers(&before.config.upstream, &config.upstream));
        let upstreams = match kept {
            Some(before) => Arc::clone(&before.upstreams),
            None => upstreams(&config.upstream, now, before)?,
        };
        let tracer = tracer(&config, metrics, before)?;
        let notifier = notifier(&config, metrics, before)?;
        let tls = tls(&config, before)?;
        let named = |class: &ClassConfig| Named {
            name: Arc::from(class.class.name.as_str()),
            metrics: metrics.class(&class.class.name, class.mode, class.enforce_percent),
        };
        let limits = &config.client_limits;
        metrics.configured(&config);
        Ok(Self {
            limits: Limits {
                target: limits.max_uri_bytes,
                fields: limits.max_headers,
                bytes: limits.max_header_bytes,
            },
            classes: config.classes.iter().map(named).collect(),
            of_file: config
                .classes
                .iter()
                .map(|class| (class.mode, class.enforce_percent))
                .collect(),
            read: unix_ms(),
            tls,
            tracer,
            notifier,
            upstreams,
            tokens: Tokens::of(&config),
            session_cookie: session_cookie(&config, before),
            agents: Agents::of(&config).map(Arc::new),
            levels: Levels::of(&config, metrics),
            page: config
                .answers
                .page
                .clone()
                .map_or(Bytes::from_static(PAGE.as_bytes()), Bytes::from),
            config,
        })
    }

    /// Returns these settings with the overrides applied. A class without an override gets the mode
    /// of the configuration file.
    pub(crate) fn overridden(&self, overrides: &Overrides, metrics: &Metrics) -> Self {
        let mut settings = self.clone();
        let classes = settings.config.classes.iter_mut().zip(&mut settings.classes);
        for ((class, named), of_file) in classes.zip(&self.of_file) {
            (class.mode, class.enforce_percent) = match overrides.of_class(&class.class.name) {
                Some((_, bywash_control::Mode::Observe, enforce_percent)) => {
                    (Mode::Observe, enforce_percent)
                }
                Some((_, bywash_control::Mode::Enforce, enforce_percent)) => {
                    (Mode::Enforce, enforce_percent)
                }
                None => *of_file,
            };
            named.metrics = metrics.class(&class.class.name, class.mode, class.enforce_percent);
        }
        settings
    }

    /// Returns the mode of each class in the configuration file, with the percentage of clients for
    /// whom it is enforced.
    pub(crate) fn of_file(&self) -> &[(Mode, u8)] {
        &self.of_file
    }

    /// Returns the times at which the certificates expire: those shown to clients and the one shown
    /// to servers.
    pub(crate) fn expiries(&self) -> Vec<Expiry> {
        let served = self.tls.iter().flat_map(|served| served.expiries());
        served.chain(self.upstreams.certificate().cloned()).collect()
    }

    /// Returns the names of all classes, including those that a reload has removed.
    pub(crate) fn class_names(&self) -> Vec<&str> {
        self.config.classes.iter().map(|class| &*class.class.name).collect()
    }

    /// Returns the names of the classes in the configuration in force.
    pub(crate) fn present_class_names(&self) -> Vec<&str> {
        let present = self.config.classes.iter().filter(|class| !class.is_removed);
        present.map(|class| &*class.class.name).collect()
    }

    pub(crate) fn level_names(&self) -> Vec<&str> {
        let levels = self.config.levels.iter();
        levels.flat_map(|levels| &levels.names).map(String::as_str).collect()
    }

    pub(crate) fn class(&self, class: ClassId) -> &ClassConfig {
        &self.config.classes[class.index()]
    }

    /// Returns all classes that match the request. The strictest of their settings apply to it.
    pub(crate) fn classes(&self, request: &Request) -> impl Iterator<Item = &ClassConfig> {
        once(request.class).chain(request.also.iter()).map(|class| self.class(class))
    }

    /// Returns the time limits of a server for this request.
    pub(crate) fn timeouts(&self, request: &Request) -> Timeouts {
        let own = self.class(request.class).timeouts;
        self.classes(request).map(|class| class.timeouts).fold(own, Timeouts::shorter)
    }

    /// Returns the maximum number of bytes of the request's body.
    pub(crate) fn max_body_bytes(&self, request: &Request) -> u64 {
        let own = self.class(request.class).max_body_bytes;
        self.classes(request).map(|class| class.max_body_bytes).fold(own, u64::min)
    }

    /// Returns the time from the request's arrival within which it must be answered. A later answer
    /// counts as late. Returns `None` if no answer is late.
    pub(crate) fn patience(&self, request: &Request) -> Option<TimeSpan> {
        self.classes(request).filter_map(|class| class.patience).min()
    }

    /// Returns the maximum time for which the request may run. Returns `None` if no limit is set.
    pub(crate) fn run_max(&self, request: &Request) -> Option<TimeSpan> {
        self.classes(request).filter_map(|class| Some(class.class.stop?.max)).min()
    }

    pub(crate) fn class_name(&self, class: ClassId) -> &Arc<str> {
        &self.classes[class.index()].name
    }

    pub(crate) fn class_metrics(&self, class: ClassId) -> &ClassMetrics {
        &self.classes[class.index()].metrics
    }

    /// Returns a text of the settings that must be the same at all gateways of a fleet: the policies
    /// and the classes, as the configuration file has them.
    #[cfg(feature = "fleet")]
    pub(crate) fn for_fleet(&self) -> String {
        let Config { mode, scheduler, classes, .. } = &self.config;
        let class = |(class, mode): (&ClassConfig, &(Mode, u8))| {
            let ClassConfig { class, patterns, patience, .. } = class;
            let Class { name, tier, utility, revenue, queue, requires, stop, fixed_value } = class;
            // The numbers of classes differ between processes.
            let requires = requires.iter().map(|class| &*self.classes[class.index()].name);
            let requires: BTreeSet<&str> = requires.collect();
            format!(
                "{name} {mode:?} {patterns:?} {patience:?} {tier:?} {utility:?} {revenue:?} \
                 {queue:?} {requires:?} {stop:?} {fixed_value:?}\n"
            )
        };
        let present = classes.iter().zip(&self.of_file).filter(|(class, _)| !class.is_removed);
        let classes: BTreeSet<String> = present.map(class).collect();
        format!("{mode:?} {scheduler:?} {classes:?}")
    }

    /// Returns whether the address belongs to a trusted hop, whose statements about clients are
    /// believed.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.config.listen.trusted_proxies.iter().any(|network| network.contains(address))
    }
}

fn upstreams(
    upstream: &Upstream,
    now: Time,
    before: Option<&Settings>,
) -> Result<SharedUpstreams, GatewayError> {
    let before = before.map(|before| &*before.upstreams);
    Upstreams::new(upstream, now, before).map(Arc::new).map_err(GatewayError::Tls)
}

/// Returns the watch for the session cookie. If the settings for it have not changed, that is the
/// watch of `before`, which keeps its learned state.
fn session_cookie(config: &Config, before: Option<&Settings>) -> Option<Arc<SessionCookie>> {
    let kept = before.and_then(|before| before.session_cookie.as_ref());
    match kept.filter(|cookie| cookie.matches_config(&config.identify)) {
        Some(cookie) => Some(Arc::clone(cookie)),
        None => SessionCookie::of(&config.identify).map(Arc::new),
    }
}

fn tracer(
    config: &Config,
    metrics: &Metrics,
    before: Option<&Settings>,
) -> Result<Option<Arc<Tracer>>, GatewayError> {
    let Some(collector) = &config.traces else { return Ok(None) };
    match before.filter(|before| before.config.traces == config.traces) {
        Some(before) => Ok(before.tracer.clone()),
        None => Tracer::start(collector, metrics.dropped_spans()),
    }
}

fn notifier(
    config: &Config,
    metrics: &Metrics,
    before: Option<&Settings>,
) -> Result<Option<Arc<CancelNotifier>>, GatewayError> {
    let Some(socket) = &config.stopd.socket else { return Ok(None) };
    match before.filter(|before| before.config.stopd.socket == config.stopd.socket) {
        Some(before) => Ok(before.notifier.clone()),
        None => CancelNotifier::start(socket, metrics.orphans()).map(Some),
    }
}

fn tls(
    config: &Config,
    before: Option<&Settings>,
) -> Result<Option<Arc<bywash_tls::Served>>, GatewayError> {
    let Some(tls) = &config.tls else { return Ok(None) };
    let pair = |certificate: &bywash_config::Certificate| bywash_tls::Pair {
        chain: certificate.chain.clone(),
        key: certificate.key.clone(),
    };
    let pairs: Vec<_> = tls.certificates.iter().map(pair).collect();
    let http2 = config.listen.http2;
    let kept = before.filter(|before| before.config.listen.http2 == http2);
    if let Some(served) = kept.and_then(|before| before.tls.as_ref()) {
        // The listener's TLS settings are kept, so that clients can go on using their session
        // tickets.
        served.reload(&pairs).map_err(GatewayError::Tls)?;
        return Ok(Some(Arc::clone(served)));
    }
    bywash_tls::server(&pairs, http2)
        .map(|served| Some(Arc::new(served)))
        .map_err(GatewayError::Tls)
}
