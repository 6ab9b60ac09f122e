//! Single requests: one of the last, with what was decided about it and why; and all of them from
//! now on.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use bywash_engine::Reason;
use bywash_message::Framing;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{fields, plain};
use crate::journal::Entry;
use crate::reply::{Answer, Reply};
use crate::shared::Shared;

/// Lines that may wait for whoever watches.
const WAITING: usize = 64;

/// What is known of the request with this name (sixteen hexadecimal digits).
pub(super) fn explain(shared: &Shared, name: &str) -> Reply {
    let is_name = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(name, 16).ok().filter(|_| is_name);
    let Some(number) = number else {
        return plain(StatusCode::BAD_REQUEST, "a request's name is sixteen hexadecimal digits");
    };
    match shared.journal.find(number).filter(|entry| entry.decided.is_some()) {
        Some(entry) => super::json(StatusCode::OK, &explained(&entry)),
        None => plain(
            StatusCode::NOT_FOUND,
            "no such request among the last 10,000 that have ended; the access log may have it",
        ),
    }
}

fn explained(entry: &Entry) -> Value {
    let mut line = entry.json();
    let reason = line["reason"].as_str().and_then(|name| {
        Reason::ALL.into_iter().find(|reason| reason.name() == name).map(Reason::explanation)
    });
    line["explanation"] = json!(reason);
    line
}

/// Every request that ends from now on, one a line; of those only that have all of `wanted`.
pub(super) fn tap(shared: &Shared, wanted: &BTreeMap<String, String>) -> Reply {
    if let Some(stranger) = wanted.keys().find(|key| !FILTERS.contains(&key.as_str())) {
        let known = FILTERS.join(", ");
        let words = format!("`{stranger}` is no filter; there are {known}");
        return plain(StatusCode::BAD_REQUEST, &words);
    }
    let Some(entries) = shared.journal.watch() else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "enough people watch already");
    };
    let (lines, words) = mpsc::channel(WAITING);
    tokio::task::spawn_local(follow(entries, lines, wanted.clone()));
    Reply { framing: Framing::Chunked, body: Answer::Later(words), ..tap_head() }
}

/// The same answer to a `HEAD`.
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

/// What can be asked for.
const FILTERS: [&str; 9] =
    ["class", "level", "outcome", "decision", "reason", "status", "session", "standing", "client"];

async fn follow(
    mut entries: mpsc::Receiver<Arc<Entry>>,
    lines: mpsc::Sender<Bytes>,
    wanted: BTreeMap<String, String>,
) {
    loop {
        let entry = tokio::select! {
            entry = entries.recv() => entry,
            () = lines.closed() => return,
        };
        let Some(entry) = entry else { return };
        let line = entry.json();
        let is = |(key, value): (&String, &String)| match &line[key] {
            Value::String(text) => text == value,
            Value::Number(number) => {
                value.parse().is_ok_and(|value: u64| number.as_u64() == Some(value))
            }
            _ => false,
        };
        if wanted.iter().all(is) && lines.send(Bytes::from(format!("{line}\n"))).await.is_err() {
            return;
        }
    }
}
