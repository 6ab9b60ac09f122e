//! `/v1/status`: what the gateway is doing, as JSON.

use std::sync::atomic::Ordering;

use bywash_engine::catalog::Value as Setting;
use bywash_engine::{ClassId, Outcome};
use serde_json::{Map, Value, json};

use crate::shared::Shared;

/// Spans are in milliseconds, counts since the start of the process.
pub(super) fn status(shared: &Shared) -> Value {
    let status = shared.driver.status();
    let parameters = shared.config.order.values();
    let parameters: Map<String, Value> =
        parameters.map(|(parameter, value)| (parameter.name.into(), setting(value))).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mode": if shared.is_bypassed() { "bypass" } else { shared.config.mode.name() },
        "draining": shared.is_draining(),
        "uptime_ms": shared.driver.now().since(bywash_units::Time::ZERO).as_millis(),
        "limit": status.limit,
        "running": status.running,
        "waiting": status.waiting,
        "oldest_wait_ms": status.oldest.as_millis(),
        "newest_first": status.newest_first,
        "mean_service_ms": status.mean_service.as_secs_f64() * 1e3,
        "sessions": status.sessions,
        "connections": shared.connections.load(Ordering::Relaxed),
        "upstream": shared.config.upstream.authority(),
        "policy": { "name": shared.config.order.name(), "parameters": parameters },
        "access_log_dropped": shared.log.dropped(),
        "classes": classes(shared),
    })
}

fn classes(shared: &Shared) -> Vec<Value> {
    let waiting = shared.driver.waiting_by_class();
    let class = |(index, class): (usize, &bywash_config::ClassConfig)| {
        let count = |outcome: &Outcome| {
            let count = shared.metrics.outcome(ClassId(index as u8), *outcome);
            (outcome.name().to_owned(), Value::from(count))
        };
        json!({
            "name": class.class.name,
            "tier": class.class.tier.name(),
            "mode": class.mode.name(),
            "utility": class.class.utility.get(),
            "waiting": waiting[index],
            "outcomes": Outcome::ALL.iter().map(count).collect::<Map<_, _>>(),
        })
    };
    shared.config.classes.iter().enumerate().map(class).collect()
}

fn setting(value: Setting) -> Value {
    match value {
        Setting::Count(count) => count.into(),
        Setting::Share(share) => share.get().into(),
        Setting::Span(span) => span.to_string().into(),
        Setting::Choice(word) => word.into(),
    }
}

/// Brings the gauges up to date, for a scrape.
pub(super) fn read_gauges(shared: &Shared) {
    let status = shared.driver.status();
    let gauges = shared.metrics.gauges();
    gauges.limit.set(i64::from(status.limit));
    gauges.running.set(i64::from(status.running));
    gauges.newest_first.set(i64::from(status.newest_first));
    gauges.sessions.set(i64::from(status.sessions));
    let connections = shared.connections.load(Ordering::Relaxed);
    gauges.connections.set(i64::try_from(connections).unwrap_or(i64::MAX));
    gauges.draining.set(i64::from(shared.is_draining()));
    gauges.log_dropped.set(i64::try_from(shared.log.dropped()).unwrap_or(i64::MAX));
    shared.metrics.set_waiting(&shared.driver.waiting_by_class());
}
