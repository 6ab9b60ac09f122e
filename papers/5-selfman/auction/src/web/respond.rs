//! The one place where outcomes become HTTP responses.

use bywash_database::DbResult;
use bywash_site::{Body, HTML, respond, text};
use http::{Response, StatusCode};

use super::html;
use crate::action::StaticPage;
use crate::store::Answer;

/// Something in grey, 160 × 48.
const LOGO: &[u8] = include_bytes!("logo.jpg");

/// What a worker made of a request.
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
