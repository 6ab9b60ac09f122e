//! Answers `/v1/history` and `/v1/events`. The former returns rows of the recorded history, or the
//! sums of a window. The latter streams every second as it ends, and changed revisions, as
//! server-sent events.
//!
//! The id of an event is `EPOCH-NUMBER`: the epoch stands for the process, and the number is that
//! of the event's last second. A browser that reconnects sends the last id that it has received,
//! and gets all seconds since. It gets all recorded seconds, and the instruction to discard its
//! own, in two cases: some of the missing seconds are gone, or the epoch differs because another
//! process answers.

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

/// The maximum number of events that may wait for one client. After that, later seconds are merged
/// into one larger event.
const WAITING: usize = 4;

/// Answers `/v1/history`: returns rows of the last 15 minutes or 24 hours, from a row number on, or
/// the sums of a window. `wanted` holds the query parameters. Returns an error if one of them is
/// invalid.
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

/// Answers `/v1/events`: streams the recorded seconds that the client has not received, and then
/// each second as it ends.
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

/// Returns the number of the last second that the client has received, from its event id; `None` if
/// the id is invalid or of another epoch.
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

/// Returns an event with the rows from number `wanted` on, and sets `wanted` to the number after
/// the last of them. Returns `None` if there are no such rows.
fn rows(shared: &Shared, wanted: &mut Option<u64>) -> Option<Bytes> {
    // All clients that need only the newest second share one event.
    if let Some((number, event)) = shared.history_recorder.newest()
        && *wanted == Some(number)
    {
        *wanted = Some(number + 1);
        return Some(event);
    }
    let columns = shared.history_recorder.history().columns(Range::Seconds, wanted.unwrap_or(0));
    let (first, last) = (*columns.number.first()?, *columns.number.last()?);
    // If the wanted row is gone, all recorded rows are sent.
    let name = if *wanted == Some(first) { "seconds" } else { "anew" };
    *wanted = Some(last + 1);
    Some(event(shared.history_recorder.epoch, name, &columns))
}

/// Returns an event with the revisions; `None` if they have not changed since the last such event.
fn changed(shared: &Shared, sent: &mut Option<Revisions>) -> Option<Bytes> {
    let now = status::revisions(shared);
    (sent.replace(now) != Some(now)).then(|| {
        let text = serde_json::to_string(&now).unwrap_or_default();
        Bytes::from(format!("event: changed\ndata: {text}\n\n"))
    })
}
