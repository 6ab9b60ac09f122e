//! Converts the outcomes of requests to HTTP responses.

use bywash_site::{Body, HTML, add, respond, text};
use http::header::SET_COOKIE;
use http::{Response, StatusCode};

use super::page;
use crate::store::{Answer, Missing, StageResult};

/// Returns the response for a worker's answer. `title` is the title of the stage's page.
pub(super) fn answer(answer: &Answer, title: &str) -> Response<Body> {
    let mut response = match &answer.result {
        StageResult::Page(shown) => respond(StatusCode::OK, HTML, page::render(title, shown)),
        StageResult::Missing(missing) => text(StatusCode::CONFLICT, words(*missing)),
        StageResult::NoSuchProduct => text(StatusCode::NOT_FOUND, "no such product"),
        StageResult::Failed => text(StatusCode::INTERNAL_SERVER_ERROR, "the database failed"),
    };
    if let Some(sid) = answer.new_session {
        add(&mut response, SET_COOKIE, &format!("sid={sid}; Path=/; HttpOnly"));
    }
    response
}

fn words(missing: Missing) -> &'static str {
    match missing {
        Missing::Cart => "the cart is empty",
        Missing::Login => "log in first",
        Missing::Shipping => "give an address first",
        Missing::Payment => "pay first",
    }
}
