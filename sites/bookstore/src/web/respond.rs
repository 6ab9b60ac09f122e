//! The one place where outcomes become HTTP responses.

use bywash_site::{Body, HTML, JSON, TEXT, add, respond, text};
use http::header::{ALLOW, SET_COOKIE};
use http::{Response, StatusCode};

use super::{Refusal, page};
use crate::Stats;
use crate::database::Trouble;
use crate::store::{Answer, Page};
use crate::worker::Outcome;

/// What a worker made of a request.
pub(super) fn outcome(outcome: Outcome) -> Response<Body> {
    match outcome {
        Outcome::Page(answer) => shown(&answer),
        Outcome::File(file) => respond(StatusCode::OK, file.kind, file.content),
        Outcome::Trouble(trouble) => failed(&trouble),
    }
}

fn shown(answer: &Answer) -> Response<Body> {
    let mut response = match &answer.page {
        Page::EmptyCart => text(StatusCode::CONFLICT, "the cart is empty"),
        Page::NoSuchBook => text(StatusCode::NOT_FOUND, "no such book"),
        Page::NoSuchCategory => text(StatusCode::NOT_FOUND, "no such category"),
        page => respond(StatusCode::OK, HTML, page::render(page)),
    };
    if let Some(sid) = answer.new_session {
        add(&mut response, SET_COOKIE, &format!("sid={sid}; Path=/; HttpOnly"));
    }
    response
}

/// What the database itself says is for the operator, on stderr.
fn failed(trouble: &Trouble) -> Response<Body> {
    match trouble {
        Trouble::Cancelled => {
            text(StatusCode::SERVICE_UNAVAILABLE, "the request was stopped in the database")
        }
        Trouble::Lost(_) | Trouble::Silent => {
            text(StatusCode::SERVICE_UNAVAILABLE, "the database is not there")
        }
        Trouble::Taken => {
            text(StatusCode::SERVICE_UNAVAILABLE, "no connection to the database is free")
        }
        Trouble::Failed(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the database failed"),
    }
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

/// The store is up, however long its queue.
pub(super) fn health() -> Response<Body> {
    text(StatusCode::OK, "ok")
}
