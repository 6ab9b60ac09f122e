//! What is in force: the configuration and what was made of it. A reload makes another one; a
//! request keeps the one that it began with.

use std::iter::once;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use bywash_config::{ClassConfig, Config, Mode, Timeouts, Upstream};
use bywash_control::Overrides;
use bywash_engine::classify::strict;
use bywash_engine::{ClassId, ClassSet, Request};
use bywash_message::Limits;
use bywash_tls::Expiry;
use bywash_units::{Span, Time};

use crate::access_log::wall_clock_ms;
use crate::gateway::GatewayError;
use crate::levels::Levels;
use crate::metrics::{ClassMetrics, Metrics};
use crate::orphans::Teller;
use crate::request::SessionCookie;
use crate::tokens::Tokens;
use crate::traces::Tracer;
use crate::upstream::{SharedUpstreams, Upstreams, same_servers};

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    /// What the head of a request may take.
    pub(crate) limits: Limits,
    /// By class.
    classes: Vec<Named>,
    /// What the file says of each class: how it is treated, and of how many of a hundred visitors.
    of_file: Vec<(Mode, u8)>,
    /// When the file was read, in milliseconds since 1970.
    pub(crate) read: u64,
    pub(crate) tls: Option<Arc<bywash_tls::Served>>,
    pub(crate) upstreams: SharedUpstreams,
    /// If there are session tokens.
    pub(crate) tokens: Option<Tokens>,
    /// If sessions are known by a cookie of the application's.
    pub(crate) session_cookie: Option<Arc<SessionCookie>>,
    /// If there are levels.
    pub(crate) levels: Option<Levels>,
    /// What a browser is shown that is refused.
    pub(crate) page: Bytes,
    /// Where spans go, if anywhere.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// Who is told whose client has gone, if anybody.
    pub(crate) teller: Option<Arc<Teller>>,
}

/// A class's counters and its name as the journal keeps it.
#[derive(Clone)]
struct Named {
    name: Arc<str>,
    metrics: ClassMetrics,
}

/// Shown if the operator has no page of their own.
const PAGE: &str = include_str!("busy.html");

impl Settings {
    /// Reads certificates. What `before` has and nobody has changed goes on.
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
        let teller = teller(&config, metrics, before)?;
        let tls = tls(&config, before)?;
        let named = |class: &ClassConfig| Named {
            name: Arc::from(class.class.name.as_str()),
            metrics: metrics.class(&class.class.name, class.mode, class.percent),
        };
        let limits = &config.limits;
        metrics.configured(&config);
        Ok(Self {
            limits: Limits {
                target: limits.max_uri_bytes,
                fields: limits.max_headers,
                bytes: limits.max_header_bytes,
            },
            classes: config.classes.iter().map(named).collect(),
            of_file: config.classes.iter().map(|class| (class.mode, class.percent)).collect(),
            read: wall_clock_ms(),
            tls,
            tracer,
            teller,
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

    /// The same, but for what overrides the file.
    pub(crate) fn overridden(&self, overrides: &Overrides, metrics: &Metrics) -> Self {
        let mut settings = self.clone();
        let classes = settings.config.classes.iter_mut().zip(&mut settings.classes);
        for ((class, named), of_file) in classes.zip(&self.of_file) {
            (class.mode, class.percent) = match overrides.of_class(&class.class.name) {
                Some((_, bywash_control::Mode::Observe, percent)) => (Mode::Observe, percent),
                Some((_, bywash_control::Mode::Enforce, percent)) => (Mode::Enforce, percent),
                None => *of_file,
            };
            named.metrics = metrics.class(&class.class.name, class.mode, class.percent);
        }
        settings
    }

    /// What the file says of each class: how it is treated, and of how many of a hundred visitors.
    pub(crate) fn of_file(&self) -> &[(Mode, u8)] {
        &self.of_file
    }

    /// When each certificate ends, of those for clients and of the one for servers.
    pub(crate) fn expiries(&self) -> Vec<Expiry> {
        let served = self.tls.iter().flat_map(|served| served.expiries());
        served.chain(self.upstreams.certificate().cloned()).collect()
    }

    pub(crate) fn class_names(&self) -> Vec<&str> {
        self.config.classes.iter().map(|class| &*class.class.name).collect()
    }

    pub(crate) fn level_names(&self) -> Vec<&str> {
        let levels = self.config.levels.iter();
        levels.flat_map(|levels| &levels.names).map(String::as_str).collect()
    }

    pub(crate) fn class(&self, class: ClassId) -> &ClassConfig {
        &self.config.classes[class.index()]
    }

    /// Of several classes the one that ranks lowest.
    pub(crate) fn lowest(&self, classes: ClassSet) -> ClassId {
        let lowest = strict::lowest(classes, |class| &self.class(class).class);
        lowest.unwrap_or_else(|| self.config.classifier.default_class())
    }

    /// All classes that a request may be of: it is treated as strictly as any of them would be.
    pub(crate) fn classes(&self, request: &Request) -> impl Iterator<Item = &ClassConfig> {
        once(request.class).chain(request.also.iter()).map(|class| self.class(class))
    }

    /// How long a server may take for a request.
    pub(crate) fn timeouts(&self, request: &Request) -> Timeouts {
        let own = self.class(request.class).timeouts;
        self.classes(request).map(|class| class.timeouts).fold(own, Timeouts::shorter)
    }

    /// How many bytes the body of a request may have.
    pub(crate) fn max_body_bytes(&self, request: &Request) -> u64 {
        let own = self.class(request.class).max_body_bytes;
        self.classes(request).map(|class| class.max_body_bytes).fold(own, u64::min)
    }

    /// When the answer to a request is late, if it ever is.
    pub(crate) fn patience(&self, request: &Request) -> Option<Span> {
        self.classes(request).filter_map(|class| class.patience).min()
    }

    /// How long a request may run at most, if it can be stopped.
    pub(crate) fn run_max(&self, request: &Request) -> Option<Span> {
        self.classes(request).filter_map(|class| Some(class.class.stop?.max)).min()
    }

    pub(crate) fn class_name(&self, class: ClassId) -> &Arc<str> {
        &self.classes[class.index()].name
    }

    pub(crate) fn class_metrics(&self, class: ClassId) -> &ClassMetrics {
        &self.classes[class.index()].metrics
    }

    /// Whether what comes from there is believed about where it comes from.
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

/// Keeps what is known of the cookie as long as the file says the same about it.
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

fn teller(
    config: &Config,
    metrics: &Metrics,
    before: Option<&Settings>,
) -> Result<Option<Arc<Teller>>, GatewayError> {
    let Some(socket) = &config.sentry.socket else { return Ok(None) };
    match before.filter(|before| before.config.sentry.socket == config.sentry.socket) {
        Some(before) => Ok(before.teller.clone()),
        None => Teller::start(socket, metrics.orphans()).map(Some),
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
        // Who has a session ticket can go on using it.
        served.reload(&pairs).map_err(GatewayError::Tls)?;
        return Ok(Some(Arc::clone(served)));
    }
    bywash_tls::server(&pairs, http2)
        .map(|served| Some(Arc::new(served)))
        .map_err(GatewayError::Tls)
}
