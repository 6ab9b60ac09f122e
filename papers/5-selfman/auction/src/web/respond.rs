//! Maps outcomes to HTTP responses.

use bywash_database::DbResult;
use bywash_site::{Body, HTML, respond, text};
use http::{Response, StatusCode};

use super::html;
use crate::action::StaticPage;
use crate::store::Answer;

/// A grey picture of 160 × 48 pixels.
const LOGO: &[u8] = include_bytes!("logo.jpg");

/// Returns the response for a worker's result.
pub(super) fn response(result: DbResult<Answer>) -> Response<Body> {
    match result {
        Ok(Answer::Static(StaticPage::Logo)) => respond(StatusCode::OK, "image/jpeg", LOGO),
        Ok(Answer::Missing(what)) => text(StatusCode::NOT_FOUND, &format!("no such {what}")),
        Ok(Answer::Unauthenticated) => text(StatusCode::FORBIDDEN, "wrong nickname or password"),
        Ok(Answer::Declined(why)) => text(StatusCode::CONFLICT, why),
        Ok(answer) => respond(StatusCode::OK, HTML, html::render(&answer)),
        Err(error) => error.answer(),
    }
}
