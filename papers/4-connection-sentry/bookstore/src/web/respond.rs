//! Converts the results of workers into HTTP responses.

use bywash_database::DbResult;
use bywash_site::{Body, HTML, add, respond, text};
use http::header::SET_COOKIE;
use http::{Response, StatusCode};

use super::page;
use crate::app_state::WorkerResponse;
use crate::store::{Answer, Page};

/// Returns the HTTP response for the result of a worker.
pub(super) fn response(result: DbResult<WorkerResponse>) -> Response<Body> {
    match result {
        Ok(WorkerResponse::Page(answer)) => page_response(&answer),
        Ok(WorkerResponse::File(file)) => respond(StatusCode::OK, file.kind, file.content),
        Err(error) => error.answer(),
    }
}

fn page_response(answer: &Answer) -> Response<Body> {
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
