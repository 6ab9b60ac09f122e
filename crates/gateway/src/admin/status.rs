//! Answers `/v1/status`, the state of the gateway, and reads the gauges for `/metrics`.

use std::sync::atomic::Ordering;

use bywash_api::{
    ClassStatus, MemoryStatus, PolicyInForce, Revisions, ServerStatus, StandingCounts, Status,
};
use bywash_config::{ClassConfig, Server};
use bywash_engine::catalog::{Decides, Settings as PolicySettings, Value as Setting};
use bywash_engine::{ClassId, Outcome, Standing, Tier};
use bywash_history::OutcomeCounts;
use bywash_units::{Time, TimeSpan};
use serde_json::Value;

use crate::settings::Settings;
use crate::shared::Shared;
use crate::telemetry::metrics::ClassMetrics;
use crate::telemetry::metrics::ServerStatus as ServerCounts;

pub(super) fn status(shared: &Shared) -> Status {
    let status = shared.driver.status();
    let settings = shared.settings();
    let config = &settings.config;
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        mode: if shared.is_bypassed() { "bypass" } else { config.mode.name() }.to_owned(),
        pid: std::process::id(),
        config_hash: config.hash.clone(),
        fleet: config.fleet.as_ref().map(|fleet| fleet.name.clone()),
        draining: shared.is_leaving.load(Ordering::Relaxed),
        uptime_ms: shared.driver.now().since(Time::ZERO).as_millis(),
        limit: status.limit,
        running: status.running,
        waiting: status.waiting,
        uploads: shared.uploads.load(Ordering::Relaxed) as u64,
        departed: shared.departed.load(Ordering::Relaxed) as u64,
        throttled_waiting: status.throttled_waiting,
        oldest_wait_ms: status.oldest.as_millis(),
        lifo: status.lifo,
        mean_service_ms: status.mean_service.as_secs_f64() * 1e3,
        sessions: status.sessions,
        session_cookie: settings.session_cookie.as_ref().map(|cookie| cookie.status()),
        connections: shared.connections.open() as u64,
        streams: shared.streams.load(Ordering::Relaxed) as u64,
        memory: memory(shared),
        servers: servers(shared, &settings),
        policy: policy(&config.scheduler),
        concurrency_policy: policy(&config.engine.limit),
        access_log_dropped: shared.request_log.log().dropped(),
        classes: classes(shared, &settings),
        unwritten: shared.state_writer.unwritten(),
        reload_refused: shared.reload_refused(),
        revisions: revisions(shared),
    }
}

fn memory(shared: &Shared) -> MemoryStatus {
    let memory = &shared.memory;
    MemoryStatus {
        used: memory.used() as u64,
        budget: memory.budget() as u64,
        level: memory.level().name().to_owned(),
    }
}

/// Returns the revisions of the documents for operators. A changed revision tells a client to load
/// that document again.
pub(crate) fn revisions(shared: &Shared) -> Revisions {
    // The locks are taken one after the other, never two at once.
    let elephants = shared.elephants.findings().revision;
    let policy = shared.overrides().get().revision();
    let audit = shared.audit.notes().revision;
    Revisions { elephants, policy, audit }
}

pub(super) fn policy<D: Decides>(settings: &PolicySettings<D>) -> PolicyInForce {
    let values = settings.values();
    let parameters = values.map(|(parameter, value)| (parameter.name.into(), setting(value)));
    PolicyInForce { name: settings.name().to_owned(), parameters: parameters.collect() }
}

fn servers(shared: &Shared, settings: &Settings) -> Vec<ServerStatus> {
    let server = |(server, status): (&Server, ServerCounts)| ServerStatus {
        server: server.to_string(),
        state: status.state.name().to_owned(),
        running: status.running,
        failures: status.failures,
        connect_failures: status.connect_failures,
        response_failures: status.response_failures,
    };
    servers_with_counts(shared, settings).map(server).collect()
}

/// Returns each server of the settings with its status, in the order of the configuration.
fn servers_with_counts<'a>(
    shared: &Shared,
    settings: &'a Settings,
) -> impl Iterator<Item = (&'a Server, ServerCounts)> {
    let counts = settings.upstreams.servers.snapshot(shared.driver.now());
    settings.upstreams.list().iter().zip(counts)
}

fn classes(shared: &Shared, settings: &Settings) -> Vec<ClassStatus> {
    let waiting = shared.driver.waiting_by_class();
    let may_run = shared.driver.may_run_by_class();
    let class = |(index, (class, waiting)): (usize, (&ClassConfig, u32))| {
        let metrics = settings.class_metrics(ClassId(index as u8));
        let standings = standings(metrics);
        (!class.is_removed || waiting > 0).then(|| ClassStatus {
            name: class.class.name.clone(),
            tier: class.class.tier.name().to_owned(),
            mode: class.mode.name().to_owned(),
            enforce_percent: class.enforce_percent,
            utility: class.class.utility.get(),
            patience_ms: class.patience.map(TimeSpan::as_millis),
            may_run_ms: may_run.get(index).copied().flatten().map(TimeSpan::as_millis),
            waiting,
            outcomes: OutcomeCounts::of(Outcome::ALL.map(|outcome| metrics.outcome(outcome))),
            standings,
            warning: warning(settings, class, standings),
        })
    };
    settings.config.classes.iter().zip(waiting).enumerate().filter_map(class).collect()
}

fn standings(metrics: &ClassMetrics) -> StandingCounts {
    StandingCounts {
        transaction: metrics.standing(Standing::Transaction),
        in_progress: metrics.standing(Standing::InProgress),
        new: metrics.standing(Standing::New),
    }
}

/// The minimum number of requests of a class before operators are warned about the class.
const ENOUGH: u64 = 20;

/// Returns a warning for operators if a class is of the transaction tier, but none of its requests
/// counted as a transaction. Returns `None` if there is no reason for a warning.
fn warning(settings: &Settings, class: &ClassConfig, counts: StandingCounts) -> Option<String> {
    let StandingCounts { transaction, in_progress, new } = counts;
    let seen = in_progress + new;
    if class.class.tier != Tier::Transaction || transaction > 0 || seen < ENOUGH {
        return None;
    }
    let requires = class.class.requires.iter().map(|class| &*settings.class(class).class.name);
    let requires: Vec<&str> = requires.collect();
    if in_progress == 0 {
        return Some(format!(
            "none of {seen} requests was of a session that was served before: check identify.session"
        ));
    }
    (!requires.is_empty()).then(|| {
        format!(
            "none of {seen} requests was a transaction: no session had been served `{}` before",
            requires.join("` or `")
        )
    })
}

fn setting(value: Setting) -> Value {
    match value {
        Setting::Count(count) => count.into(),
        Setting::Ratio(share) => share.get().into(),
        Setting::Number(number) => number.into(),
        Setting::TimeSpan(span) => span.to_string().into(),
        Setting::Choice(word) => word.into(),
    }
}

/// Brings all gauges up to date, for one scrape of `/metrics`.
pub(super) fn read_gauges(shared: &Shared) {
    let status = shared.driver.status();
    let gauges = shared.metrics.gauges();
    gauges.limit.set(i64::from(status.limit));
    gauges.running.set(i64::from(status.running));
    gauges.throttled_waiting.set(i64::from(status.throttled_waiting));
    gauges.lanes.set(i64::from(shared.elephants.lanes.missing().is_none()));
    gauges.lifo.set(i64::from(status.lifo));
    gauges.sessions.set(i64::from(status.sessions));
    gauges.set_evictions(shared.driver.session_counts().1);
    let connections = shared.connections.open();
    gauges.connections.set(i64::try_from(connections).unwrap_or(i64::MAX));
    gauges.draining.set(i64::from(shared.is_leaving.load(Ordering::Relaxed)));
    gauges.bypassed.set(i64::from(shared.is_bypassed()));
    let large = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    gauges.decisions_unwritten.set(large(shared.state_writer.count_unwritten() as u64));
    gauges.stderr_dropped.set(large(bywash_terminal::stderr::dropped()));
    gauges.streams.set(large(shared.streams.load(Ordering::Relaxed) as u64));
    gauges.uploads.set(large(shared.uploads.load(Ordering::Relaxed) as u64));
    gauges.departed.set(large(shared.departed.load(Ordering::Relaxed) as u64));
    gauges.memory_used.set(large(shared.memory.used() as u64));
    gauges.memory_budget.set(large(shared.memory.budget() as u64));
    gauges.set_memory_level(shared.memory.level());
    gauges.log_dropped.set(large(shared.request_log.log().dropped()));
    gauges.tap_missed.set(large(shared.request_log.missed()));
    #[cfg(feature = "fleet")]
    read_fleet(shared);
    let settings = shared.settings();
    let traffic = settings.upstreams.servers.traffic().iter().map(|traffic| &**traffic);
    shared.metrics.set_servers(servers_with_counts(shared, &settings).zip(traffic));
    let since = large(settings.read / 1000);
    shared.metrics.set_config(&settings.config.hash, since, &settings.expiries());
    shared.metrics.set_runtime(bywash_sense::Process::own(), &shared.driver.lock_times());
    // In the middle of a reload the engine has classes that these settings do not know yet.
    let known = settings.config.classes.len();
    for (class, waiting) in shared.driver.waiting_by_class().into_iter().take(known).enumerate() {
        settings.class_metrics(ClassId(class as u8)).set_waiting(waiting);
    }
}

#[cfg(feature = "fleet")]
fn read_fleet(shared: &Shared) {
    let fleet = shared.fleet.status();
    let gauges = shared.metrics.gauges();
    gauges.fleet_connected.set(i64::from(fleet.is_connected));
    gauges.fleet_share.set(i64::from(fleet.share));
    gauges.fleet_differences.set(i64::try_from(fleet.warnings.len()).unwrap_or(i64::MAX));
    let current = fleet.gateways.iter().filter(|gateway| gateway.is_current).count();
    gauges.fleet_gateways.set(i64::try_from(current).unwrap_or(i64::MAX));
    let ignored: u64 = fleet.rejected.values().sum();
    gauges.fleet_ignored.set(i64::try_from(ignored).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use bywash_config::Config;
    use bywash_engine::Engine;
    use bywash_units::Time;
    use prometheus_client::metrics::counter::Counter;

    use super::*;
    use crate::driver::Driver;
    use crate::process::secret::Secret;
    use crate::telemetry::access_log::AccessLog;
    use crate::telemetry::metrics::Metrics;
    use crate::telemetry::request_log::RequestLog;

    fn config(lines: &str) -> Config {
        let text = format!("version = 1\nupstream.server = 'http://127.0.0.1:1'\n{lines}");
        let Ok((config, _)) = Config::parse(&text, "test") else { panic!("{text}") };
        config
    }

    #[test]
    fn in_the_middle_of_a_reload_the_classes_of_both_sides_are_told() {
        let (before, after) = (config(""), config("class.a = { match = ['GET /a'] }"));
        let classes: Vec<_> = after.classes.iter().map(|class| class.class.clone()).collect();
        let scheduler = after.scheduler.scheduler(&classes);
        let driver = Driver::new(Engine::new(classes, scheduler, after.engine));
        let log = AccessLog::open(&bywash_config::AccessLog::Off, Counter::default()).unwrap();
        let metrics = Metrics::new();
        let settings = Settings::new(before, &metrics, Time::ZERO, None).unwrap();
        let shared = Shared::new(settings, driver, metrics, RequestLog::new(log), Secret(1, 2));
        read_gauges(&shared);
        assert_eq!(status(&shared).classes.len(), 1);
    }
}
