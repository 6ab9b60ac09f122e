//! The one place where outcomes become HTTP responses.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, SET_COOKIE};
use http::{Response, StatusCode};
use http_body_util::Full;

use super::{Refusal, page};
use crate::Stats;
use crate::store::{Answer, Missing, Verdict};

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What a worker made of a request, under the `title` of its stage.
pub(super) fn answer(answer: &Answer, title: &str) -> Response<Full<Bytes>> {
    let mut response = match &answer.verdict {
        Verdict::Page(shown) => respond(StatusCode::OK, HTML, page::render(title, shown)),
        Verdict::Missing(missing) => text(StatusCode::CONFLICT, words(*missing)),
        Verdict::NoSuchProduct => text(StatusCode::NOT_FOUND, "no such product"),
        Verdict::Failed => text(StatusCode::INTERNAL_SERVER_ERROR, "the database failed"),
    };
    if let Some(sid) = answer.new_session {
        add(&mut response, SET_COOKIE, &format!("sid={sid}; Path=/; HttpOnly"));
    }
    response
}

/// Why a request was not worked on.
pub(super) fn refusal(refusal: Refusal) -> Response<Full<Bytes>> {
    let mut response = text(refusal.status(), refusal.words());
    if let Refusal::Method { allowed } = refusal {
        add(&mut response, ALLOW, allowed.as_str());
    }
    response
}

/// The statistics as JSON.
pub(super) fn stats(stats: &Stats) -> Response<Full<Bytes>> {
    match serde_json::to_vec(stats) {
        Ok(json) => respond(StatusCode::OK, JSON, json),
        Err(error) => respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, error.to_string()),
    }
}

/// The shop is up, however long its queue.
pub(super) fn health() -> Response<Full<Bytes>> {
    text(StatusCode::OK, "ok")
}

fn words(missing: Missing) -> &'static str {
    match missing {
        Missing::Cart => "the cart is empty",
        Missing::Login => "log in first",
        Missing::Shipping => "give an address first",
        Missing::Payment => "pay first",
    }
}

fn text(status: StatusCode, line: &str) -> Response<Full<Bytes>> {
    respond(status, TEXT, format!("{line}\n"))
}

fn respond(status: StatusCode, kind: &str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    add(&mut response, CONTENT_TYPE, kind);
    // Every page belongs to one session, and a cache would take load off the experiment.
    add(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// Adds a header whose value we wrote ourselves; one that HTTP cannot carry is left out.
fn add(response: &mut Response<Full<Bytes>>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
