//! Converts answers into HTTP responses. No other code creates responses.

use bywash_site::{Body, JSON, add, respond, text};
use http::header::{LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};

use crate::answer::Answer;
use crate::request_error::RequestError;

/// Converts an answer into an HTTP response.
pub(super) fn answer(answer: Answer) -> Response<Body> {
    let mut response = match answer {
        Answer::Json(status, json) => respond(status, JSON, json),
        Answer::Go(landing) => {
            let mut response = text(StatusCode::FOUND, "see the landing page");
            add(&mut response, LOCATION, landing.as_str());
            response
        }
        Answer::Error(error) => text(status(&error), &error.to_string()),
        Answer::Busy => text(StatusCode::SERVICE_UNAVAILABLE, "too many clicks are waiting"),
        Answer::Failed => text(StatusCode::INTERNAL_SERVER_ERROR, "the ad server failed"),
    };
    add(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn status(error: &RequestError) -> StatusCode {
    match error {
        RequestError::UnknownConcept { .. } => StatusCode::BAD_REQUEST,
        RequestError::Unknown(_) => StatusCode::NOT_FOUND,
        RequestError::Capacity(_) | RequestError::Promised(_) | RequestError::Conflict(_) => {
            StatusCode::CONFLICT
        }
        RequestError::Database => StatusCode::INTERNAL_SERVER_ERROR,
        RequestError::Closing => StatusCode::SERVICE_UNAVAILABLE,
    }
}
