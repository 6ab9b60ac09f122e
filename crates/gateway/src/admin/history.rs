//! `/v1/history`: the recorded history, or the sums of a window. `/v1/events`: every second as it
//! ends, and changed revisions, as server-sent events.
//!
//! An event has the id `EPOCH-NUMBER` of its last second. A browser that reconnects sends the last
//! id that it has seen, and gets all seconds since. If some of these are gone, or the epoch is
//! different because the process is another, it gets all recorded seconds and the instruction to
//! discard its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use bywash_api::Revisions;
use bywash_history::{Range, Window};
use bywash_message::{Framing, Request};
use http::{Method, StatusCode};
use tokio::sync::mpsc;

use super::answer::{Answered, Refused, document, fields};
use super::auth::Credentials;
use super::status;
use crate::request::reply::{Answer, Reply};
use crate::shared::Shared;
use crate::telemetry::history::event;

/// The number of events that may wait for a follower. Later ones are then merged into one larger
/// event.
const WAITING: usize = 4;

/// Returns rows of the last quarter of an hour or day, from a number on; or the sums of a window.
pub(super) fn history(shared: &Shared, wanted: &BTreeMap<String, String>) -> Answered {
    if let Some(name) = wanted.get("window") {
        return window(shared, name, wanted);
    }
    let range = match wanted.get("range").map(String::as_str) {
        None | Some("15m") => Range::Seconds,
        Some("24h") => Range::Minutes,
        Some(_) => return Err(Refused::invalid("`range` must be 15m or 24h")),
    };
    let from = match wanted.get("from").map(|from| from.parse()) {
        None => 0,
        Some(Ok(from)) => from,
        Some(Err(_)) => return Err(Refused::invalid("`from` must be the number of a row")),
    };
    let columns = shared.history_recorder.history().columns(range, from);
    Ok(document(&columns))
}

fn window(shared: &Shared, name: &str, wanted: &BTreeMap<String, String>) -> Answered {
    if wanted.len() > 1 {
        return Err(Refused::invalid(
            "`window` returns sums, not rows: leave out `range` and `from`, or `window`",
        ));
    }
    let window = Window::named(name)
        .ok_or_else(|| Refused::invalid("`window` must be 10s, 60s, 15m or 24h"))?;
    let sums = shared.history_recorder.history().window(window);
    Ok(document(&sums))
}

/// Streams seconds from now on, after those that this client has not seen.
pub(super) fn events(shared: &Arc<Shared>, request: &Request, credentials: Credentials) -> Reply {
    let head = Reply {
        status: StatusCode::OK,
        reason: Vec::new(),
        fields: fields("text/event-stream"),
        framing: Framing::None,
        close: true,
        body: Answer::Empty,
    };
    if request.method == Method::HEAD {
        return head;
    }
    let (events, words) = mpsc::channel(WAITING);
    let seen = request.fields.named(b"last-event-id").next().and_then(|id| seen(shared, id));
    tokio::task::spawn_local(follow(Arc::clone(shared), seen, credentials, events));
    Reply { framing: Framing::Chunked, body: Answer::Later(words), ..head }
}

/// Returns the number of the last second that the client has seen, if it is of this epoch.
fn seen(shared: &Shared, id: &[u8]) -> Option<u64> {
    let (epoch, number) = std::str::from_utf8(id).ok()?.split_once('-')?;
    (u32::from_str_radix(epoch, 16) == Ok(shared.history_recorder.epoch))
        .then(|| number.parse().ok())?
}

async fn follow(
    shared: Arc<Shared>,
    seen: Option<u64>,
    credentials: Credentials,
    events: mpsc::Sender<Bytes>,
) {
    let mut seconds = shared.history_recorder.follow();
    let mut wanted = seen.map(|seen| seen.saturating_add(1));
    let mut sent: Option<Revisions> = None;
    while credentials.is_good(&shared) {
        for event in [rows(&shared, &mut wanted), changed(&shared, &mut sent)].into_iter().flatten()
        {
            if events.send(event).await.is_err() {
                return;
            }
        }
        tokio::select! {
            changed = seconds.changed() => if changed.is_err() { return },
            () = events.closed() => return,
        }
    }
}

/// Returns the rows that the client has not seen, if there are any, and advances `wanted`.
fn rows(shared: &Shared, wanted: &mut Option<u64>) -> Option<Bytes> {
    // All clients that have seen the second before get the very same bytes.
    if let Some((number, event)) = shared.history_recorder.newest()
        && *wanted == Some(number)
    {
        *wanted = Some(number + 1);
        return Some(event);
    }
    let columns = shared.history_recorder.history().columns(Range::Seconds, wanted.unwrap_or(0));
    let (first, last) = (*columns.number.first()?, *columns.number.last()?);
    // If the wanted row is gone, everything is sent.
    let name = if *wanted == Some(first) { "seconds" } else { "anew" };
    *wanted = Some(last + 1);
    Some(event(shared.history_recorder.epoch, name, &columns))
}

/// Returns the revisions, if they have changed since they were last sent.
fn changed(shared: &Shared, sent: &mut Option<Revisions>) -> Option<Bytes> {
    let now = status::revisions(shared);
    (sent.replace(now) != Some(now)).then(|| {
        let text = serde_json::to_string(&now).unwrap_or_default();
        Bytes::from(format!("event: changed\ndata: {text}\n\n"))
    })
}
