//! Translates a request into an OpenTelemetry span, by the semantic conventions for HTTP servers
//! (stable, 1.23 and later). Attributes that are specific to bywash have names that begin with
//! `bywash.`.
//!
//! The query of a target is left out, because clients put secrets there.

use std::borrow::Cow;
use std::time::Duration;

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::Ended;
use crate::telemetry::request_log::{Decided, Entry};

/// The methods that may be the name of a span. Other methods are left out of the name, because
/// clients can invent them.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "QUERY"];

pub(super) fn span(ended: &Ended) -> SpanData {
    let entry = &*ended.entry;
    let (method, target) = entry.message.split_once(' ').unwrap_or((&entry.message, ""));
    let known = METHODS.into_iter().find(|known| *known == method);
    let failed = entry.status.is_some_and(|status| status.is_server_error());
    let (flags, state) = (TraceFlags::SAMPLED, TraceState::NONE);
    let context =
        SpanContext::new(TraceId::from(ended.trace), SpanId::from(ended.span), flags, false, state);
    SpanData {
        span_context: context,
        parent_span_id: ended.parent.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: ended.parent.is_some(),
        span_kind: SpanKind::Server,
        name: Cow::Borrowed(known.unwrap_or("HTTP")),
        start_time: ended.begun,
        end_time: ended.begun + Duration::from_nanos(ended.taken.as_nanos()),
        attributes: attributes(entry, known, method, target),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if failed { Status::error("") } else { Status::Unset },
        instrumentation_scope: InstrumentationScope::builder("bywash")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn attributes(
    entry: &Entry,
    known: Option<&'static str>,
    method: &str,
    target: &str,
) -> Vec<KeyValue> {
    let path = target.split('?').next().unwrap_or_default();
    let version = entry.protocol.strip_prefix("HTTP/").unwrap_or_default();
    let mut attributes = vec![
        KeyValue::new("http.request.method", known.unwrap_or("_OTHER")),
        KeyValue::new("url.path", path.to_owned()),
        KeyValue::new("client.address", entry.client.to_string()),
        KeyValue::new("network.protocol.version", version),
    ];
    if known.is_none() {
        attributes.push(KeyValue::new("http.request.method_original", method.to_owned()));
    }
    if let Some(status) = entry.status {
        let code = i64::from(status.as_u16());
        attributes.push(KeyValue::new("http.response.status_code", code));
        if status.is_server_error() {
            attributes.push(KeyValue::new("error.type", status.as_str().to_owned()));
        }
    }
    if let Some(decided) = &entry.decided {
        describe(decided, &mut attributes);
    }
    attributes
}

/// Adds the attributes for the facts that the access log has too.
fn describe(decided: &Decided, attributes: &mut Vec<KeyValue>) {
    let (decision, reason) = decided.verdict.words();
    attributes.push(KeyValue::new("bywash.class", decided.class.to_string()));
    let level = decided.level.as_ref();
    attributes.extend(level.map(|level| KeyValue::new("bywash.level", level.to_string())));
    attributes.push(KeyValue::new("bywash.mode", decided.mode.name()));
    attributes.push(KeyValue::new("bywash.outcome", decided.outcome.name()));
    attributes.extend(decision.map(|decision| KeyValue::new("bywash.decision", decision)));
    attributes.extend(reason.map(|reason| KeyValue::new("bywash.reason", reason)));
    let micros = |span: bywash_units::TimeSpan| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    attributes.push(KeyValue::new("bywash.queue_wait_us", micros(decided.waited)));
    attributes.push(KeyValue::new("bywash.service_us", micros(decided.service)));
}
