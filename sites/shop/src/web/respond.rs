//! The one place where outcomes become HTTP responses.

use bywash_site::{Body, HTML, JSON, TEXT, add, respond, text};
use http::header::{ALLOW, SET_COOKIE};
use http::{Response, StatusCode};

use super::{Refusal, page};
use crate::Stats;
use crate::store::{Answer, Missing, Verdict};

/// What a worker made of a request, under the `title` of its stage.
pub(super) fn answer(answer: &Answer, title: &str) -> Response<Body> {
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
pub(super) fn refusal(refusal: Refusal) -> Response<Body> {
    let mut response = text(refusal.status(), refusal.words());
    if let Refusal::Method { allowed } = refusal {
        add(&mut response, ALLOW, allowed.as_str());
    }
    response
}

/// The statistics as JSON.
pub(super) fn stats(stats: &Stats) -> Response<Body> {
    match serde_json::to_vec(stats) {
        Ok(json) => respond(StatusCode::OK, JSON, json),
        Err(error) => respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, error.to_string()),
    }
}

/// The shop is up, however long its queue.
pub(super) fn health() -> Response<Body> {
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
