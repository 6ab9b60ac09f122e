//! The progress that a response proves for its session, by its status.

use bywash_engine::AnswerKind;
use http::StatusCode;

/// Returns whether a session may make progress by a response with this status. Its [`kind`]
/// decides.
pub(super) fn gets_on(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

/// Returns the kind of a response with this status.
pub(super) fn kind(status: StatusCode) -> AnswerKind {
    match status {
        StatusCode::NOT_MODIFIED => AnswerKind::NotModified,
        _ if status.is_redirection() => AnswerKind::Redirect,
        _ => AnswerKind::Content,
    }
}
