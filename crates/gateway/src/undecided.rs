//! Why an operator's decision was not carried out.

/// A decision that was not carried out; `R` is why it is not possible.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Undecided<R: std::error::Error + 'static> {
    /// The decision is not possible.
    #[error(transparent)]
    Refused(#[from] R),
    /// Another process is reading the decisions just now.
    #[error("another process is taking over: retry in a few seconds")]
    GivenAway,
}
