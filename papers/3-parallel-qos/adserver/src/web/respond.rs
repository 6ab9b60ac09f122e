//! The one place where answers become HTTP responses.

use bywash_site::{Body, JSON, add, respond, text};
use http::header::{LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};

use crate::answer::Answer;
use crate::fault::Fault;

/// What a worker made of a request.
pub(super) fn answer(answer: Answer) -> Response<Body> {
    let mut response = match answer {
        Answer::Json(status, json) => respond(status, JSON, json),
        Answer::Go(landing) => {
            let mut response = text(StatusCode::FOUND, "see the landing page");
            add(&mut response, LOCATION, landing.as_str());
            response
        }
        Answer::No(fault) => text(status(&fault), &fault.to_string()),
        Answer::Busy => text(StatusCode::SERVICE_UNAVAILABLE, "too many clicks are waiting"),
        Answer::Failed => text(StatusCode::INTERNAL_SERVER_ERROR, "the database failed"),
    };
    add(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn status(fault: &Fault) -> StatusCode {
    match fault {
        Fault::UnknownConcept { .. } => StatusCode::BAD_REQUEST,
        Fault::Unknown(_) => StatusCode::NOT_FOUND,
        Fault::Capacity(_) | Fault::Promised(_) | Fault::Conflict(_) => StatusCode::CONFLICT,
        Fault::Database => StatusCode::INTERNAL_SERVER_ERROR,
        Fault::Closing => StatusCode::SERVICE_UNAVAILABLE,
    }
}
