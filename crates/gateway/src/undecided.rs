//! Why what an operator has decided does not hold.

/// `R` is why it cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Undecided<R: std::error::Error + 'static> {
    /// It cannot be made.
    #[error(transparent)]
    Refused(#[from] R),
    /// Another process reads what was decided just now.
    #[error("another process is taking over: ask again")]
    GivenAway,
}
