//! Determines, from the status of a response, the progress that it proves for its session.

use bywash_engine::AnswerKind;
use http::StatusCode;

/// Returns whether a session may make progress by a response with this status, judged by its
/// [`kind`].
pub(super) fn may_advance_session(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

/// Returns the engine's kind of answer for a response with this status.
pub(super) fn kind(status: StatusCode) -> AnswerKind {
    match status {
        StatusCode::NOT_MODIFIED => AnswerKind::NotModified,
        _ if status.is_redirection() => AnswerKind::Redirect,
        _ => AnswerKind::Content,
    }
}
