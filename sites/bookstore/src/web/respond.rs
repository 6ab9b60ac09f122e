//! The one place where outcomes become HTTP responses.

use bywash_site::{Body, HTML, add, respond, text};
use http::header::SET_COOKIE;
use http::{Response, StatusCode};

use super::page;
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
