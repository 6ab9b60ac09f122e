//! Converts the results of workers into HTTP responses.

use bywash_database::DbResult;
use bywash_site::{Body, HTML, respond, text};
use http::{Response, StatusCode};

use super::html;
use crate::action::StaticPage;
use crate::store::Answer;

/// The picture of the site: a grey JPEG image of 160 × 48 pixels.
const LOGO: &[u8] = include_bytes!("logo.jpg");

/// Returns the HTTP response for the result of a worker.
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
