//! The errors with which well-formed requests are answered.

use crate::capacity::Shortage;
use crate::values::Keyword;

/// The maximum number of similar concepts that an error suggests for an unknown one.
pub(crate) const SUGGESTIONS: usize = 5;

/// An error answer. Each variant has one status code, and its message is the body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("there is no concept {keyword}; {}", suggestions(near))]
    UnknownConcept {
        keyword: Keyword,
        /// The names of existing concepts that are most similar to `keyword`, at most
        /// [`SUGGESTIONS`].
        near: Vec<Keyword>,
    },
    #[error("there is no such {0}")]
    Unknown(&'static str),
    #[error(
        "there is not enough capacity: in addition to what is promised, the contract needs {0}"
    )]
    Capacity(Shortage),
    #[error("the slot's impressions are promised: without them, running contracts need {0}")]
    Promised(Shortage),
    #[error("{0}")]
    Conflict(&'static str),
    /// The database failed. The error of SQLite was written to stderr.
    #[error("the database failed")]
    Database,
    #[error("the ad server is closing")]
    Closing,
}

fn suggestions(near: &[Keyword]) -> String {
    let keywords: Vec<_> = near.iter().map(Keyword::as_str).collect();
    if keywords.is_empty() {
        "there are no concepts yet".to_owned()
    } else {
        format!("similar: {}", keywords.join(", "))
    }
}
