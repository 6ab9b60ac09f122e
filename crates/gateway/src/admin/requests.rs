//! Answers about single requests: explains one of the last requests, lists the last ones, and
//! streams those that end from now on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bywash_api::{Code, Explained, Request, Requests};
use bywash_engine::{Outcome, Reason, Standing};
use bywash_message::Framing;
use bywash_terminal::text::excerpt;
use http::StatusCode;
use tokio::sync::mpsc;

use super::answer::{Answered, Refused, document, fields};
use super::auth::Credentials;
use super::input::limit;
use crate::request::reply::{Answer, Reply};
use crate::shared::Shared;
use crate::telemetry::request_log::Entry;

/// The interval at which the credentials of a watching connection are checked again.
const LOOK: Duration = Duration::from_secs(1);

/// The maximum number of lines that may wait for one watching connection.
const WAITING: usize = 64;

/// Returns all that is known about the request with this name (sixteen hexadecimal digits). Returns
/// an error if it is not among the last requests that have ended.
pub(super) fn explain(shared: &Shared, name: &str) -> Answered {
    let is_name = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(name, 16).ok().filter(|_| is_name);
    let number = number
        .ok_or_else(|| Refused::invalid("the name of a request has sixteen hexadecimal digits"))?;
    let entry = shared.request_log.find(number).filter(|entry| entry.decided.is_some());
    let entry = entry.ok_or_else(|| {
        let all = shared.request_log.last();
        let seconds = all.first().map_or(0, |first| {
            let now = crate::process::wall_clock::unix_ms();
            now.saturating_sub(first.time).div_ceil(1000)
        });
        Refused::not_found(format!(
            "the request is not among the last {} that have ended, which cover the last {seconds} \
             s; the access log may have it",
            all.len()
        ))
    })?;
    let request = entry.summary();
    let reason = request.life.as_ref().and_then(|life| life.reason.as_deref()).and_then(|name| {
        Reason::ALL.into_iter().find(|reason| reason.name() == name).map(Reason::explanation)
    });
    Ok(document(&Explained { request, explanation: reason.map(str::to_owned) }))
}

/// Checks the filters in `wanted`. Returns an error if a filter has a value that no request can
/// have, because it would never match.
pub(super) fn check(shared: &Shared, wanted: &BTreeMap<String, String>) -> Result<(), Refused> {
    let settings = shared.settings();
    for (name, value) in wanted {
        let known: Vec<&str> = match name.as_str() {
            "outcome" => Outcome::ALL.map(Outcome::name).into(),
            "reason" => Reason::ALL.map(Reason::name).into(),
            "standing" => Standing::ALL.map(Standing::name).into(),
            "decision" => vec!["run", "shed", "stop", "wait"],
            "class" => settings.class_names(),
            "level" => settings.level_names(),
            _ => continue,
        };
        if !known.contains(&value.as_str()) {
            let value = excerpt(value, 40);
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Refused::invalid(format!(
                "there is no {name} `{value}`; known values: {known}"
            )));
        }
    }
    Ok(())
}

/// Returns the last requests that match all filters in `wanted`, the newest first. Returns an error
/// if a filter is invalid.
pub(super) fn last(shared: &Shared, wanted: &BTreeMap<String, String>) -> Answered {
    check(shared, wanted)?;
    let most = limit(wanted)?;
    let all = shared.request_log.last();
    let summaries =
        all.iter().rev().map(|entry| entry.summary()).filter(|request| is(request, wanted));
    Ok(document(&Requests { remembered: all.len(), requests: summaries.take(most).collect() }))
}

/// Streams every request that ends from now on and matches all filters in `wanted`, one JSON object
/// per line. Returns an error if too many connections follow requests already.
pub(super) fn tap(
    shared: &Arc<Shared>,
    wanted: &BTreeMap<String, String>,
    credentials: Credentials,
) -> Answered {
    let Some(entries) = shared.request_log.watch() else {
        return Err(Refused::new(
            Code::Unavailable,
            "too many connections already follow /v1/tap: close some",
        ));
    };
    let (lines, words) = mpsc::channel(WAITING);
    tokio::task::spawn_local(follow(
        Arc::clone(shared),
        entries,
        lines,
        wanted.clone(),
        credentials,
    ));
    Ok(Reply { framing: Framing::Chunked, body: Answer::Later(words), ..tap_head() })
}

/// Returns the head of the stream of requests, which is also the answer to a `HEAD`.
pub(super) fn tap_head() -> Reply {
    Reply {
        status: StatusCode::OK,
        reason: Vec::new(),
        fields: fields("application/x-ndjson"),
        framing: Framing::None,
        close: true,
        body: Answer::Empty,
    }
}

async fn follow(
    shared: Arc<Shared>,
    mut entries: mpsc::Receiver<Arc<Entry>>,
    lines: mpsc::Sender<Bytes>,
    wanted: BTreeMap<String, String>,
    credentials: Credentials,
) {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        let entry = tokio::select! {
            entry = entries.recv() => entry,
            () = lines.closed() => return,
            _ = looks.tick() => if credentials.is_good(&shared) { continue } else { return },
        };
        let Some(entry) = entry else { return };
        let request = entry.summary();
        if !is(&request, &wanted) {
            continue;
        }
        let line = serde_json::to_string(&request).expect("made of numbers, texts and names");
        if lines.send(Bytes::from(format!("{line}\n"))).await.is_err() {
            return;
        }
    }
}

/// Returns whether a request matches all filters in `wanted`. The parameter `limit` is not a
/// filter.
fn is(request: &Request, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().filter(|(name, _)| *name != "limit").all(|(name, value)| {
        let is = |own: &str| own == value;
        let life = request.life.as_ref();
        match name.as_str() {
            "client" => is(&request.client),
            "status" => request.status.is_some_and(|status| is(&status.to_string())),
            "rule" => life.and_then(|life| life.rule).is_some_and(|rule| is(&rule.to_string())),
            "class" => life.is_some_and(|life| is(&life.class)),
            "outcome" => life.is_some_and(|life| is(&life.outcome)),
            "level" => life.and_then(|life| life.level.as_deref()).is_some_and(is),
            "decision" => life.and_then(|life| life.decision.as_deref()).is_some_and(is),
            "reason" => life.and_then(|life| life.reason.as_deref()).is_some_and(is),
            "session" => life.and_then(|life| life.session.as_deref()).is_some_and(is),
            "standing" => life.and_then(|life| life.standing.as_deref()).is_some_and(is),
            _ => false,
        }
    })
}
