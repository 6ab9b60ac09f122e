//! The settings in force: the configuration and values derived from it. A reload makes a new value;
//! a request keeps the one that it began with.

use std::iter::once;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use bywash_config::{ClassConfig, Config, Mode, Timeouts, Upstream};
use bywash_control::Overrides;
use bywash_engine::{ClassId, Request};
use bywash_message::Limits;
use bywash_tls::Expiry;
use bywash_units::{Time, TimeSpan};

use crate::error::GatewayError;
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
    /// The classes, by number.
    classes: Vec<Named>,
    /// The file's mode for each class, and the percentage of clients that it applies to.
    of_file: Vec<(Mode, u8)>,
    /// When the file was read, in milliseconds since 1970.
    pub(crate) read: u64,
    pub(crate) tls: Option<Arc<bywash_tls::Served>>,
    pub(crate) upstreams: SharedUpstreams,
    /// Session tokens, if they are configured.
    pub(crate) tokens: Option<Tokens>,
    /// The application's session cookie, if sessions are identified by one.
    pub(crate) session_cookie: Option<Arc<SessionCookie>>,
    /// The service levels, if they are configured.
    pub(crate) levels: Option<Levels>,
    /// The page for a browser whose request is refused.
    pub(crate) page: Bytes,
    /// The exporter of spans, if traces are on.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// The link to the stop daemon, if there is one. The gateway reports requests to it whose
    /// clients have left.
    pub(crate) notifier: Option<Arc<CancelNotifier>>,
}

/// A class's counters and its name as the request log keeps it.
#[derive(Clone)]
struct Named {
    name: Arc<str>,
    metrics: ClassMetrics,
}

/// The page that is shown if the operator has configured none.
const PAGE: &str = include_str!("busy.html");

impl Settings {
    /// Builds the settings and reads certificates. Parts of `before` that have not changed are
    /// reused.
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
            levels: Levels::of(&config, metrics),
            page: config
                .answers
                .page
                .clone()
                .map_or(Bytes::from_static(PAGE.as_bytes()), Bytes::from),
            config,
        })
    }

    /// Returns the same settings with the overrides applied.
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

    /// The file's mode for each class, and the percentage of clients that it applies to.
    pub(crate) fn of_file(&self) -> &[(Mode, u8)] {
        &self.of_file
    }

    /// Returns when each certificate expires, both those for clients and the one for servers.
    pub(crate) fn expiries(&self) -> Vec<Expiry> {
        let served = self.tls.iter().flat_map(|served| served.expiries());
        served.chain(self.upstreams.certificate().cloned()).collect()
    }

    /// Returns the names of all classes, also of those that a reload has removed.
    pub(crate) fn class_names(&self) -> Vec<&str> {
        self.config.classes.iter().map(|class| &*class.class.name).collect()
    }

    /// Returns the names of the classes of the file in force.
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

    /// Returns all classes that a request may be of. It is treated as strictly as any of them
    /// requires.
    pub(crate) fn classes(&self, request: &Request) -> impl Iterator<Item = &ClassConfig> {
        once(request.class).chain(request.also.iter()).map(|class| self.class(class))
    }

    /// Returns how long a server may take for a request.
    pub(crate) fn timeouts(&self, request: &Request) -> Timeouts {
        let own = self.class(request.class).timeouts;
        self.classes(request).map(|class| class.timeouts).fold(own, Timeouts::shorter)
    }

    /// Returns how many bytes the body of a request may have.
    pub(crate) fn max_body_bytes(&self, request: &Request) -> u64 {
        let own = self.class(request.class).max_body_bytes;
        self.classes(request).map(|class| class.max_body_bytes).fold(own, u64::min)
    }

    /// Returns when the answer to a request is late, if it ever is.
    pub(crate) fn patience(&self, request: &Request) -> Option<TimeSpan> {
        self.classes(request).filter_map(|class| class.patience).min()
    }

    /// Returns how long a request may run at most, if it can be stopped.
    pub(crate) fn run_max(&self, request: &Request) -> Option<TimeSpan> {
        self.classes(request).filter_map(|class| Some(class.class.stop?.max)).min()
    }

    pub(crate) fn class_name(&self, class: ClassId) -> &Arc<str> {
        &self.classes[class.index()].name
    }

    pub(crate) fn class_metrics(&self, class: ClassId) -> &ClassMetrics {
        &self.classes[class.index()].metrics
    }

    /// Returns whether this address is a trusted hop, whose statements about clients' addresses are
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

/// Keeps the learned state of the cookie while the file's settings for it are the same.
fn session_cookie(config: &Config, before: Option<&Settings>) -> Option<Arc<SessionCookie>> {
    let kept = before.and_then(|before| before.session_cookie.as_ref());
    match kept.filter(|cookie| cookie.is_of(&config.identify)) {
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
        // Clients can go on using their session tickets.
        served.reload(&pairs).map_err(GatewayError::Tls)?;
        return Ok(Some(Arc::clone(served)));
    }
    bywash_tls::server(&pairs, http2)
        .map(|served| Some(Arc::new(served)))
        .map_err(GatewayError::Tls)
}
