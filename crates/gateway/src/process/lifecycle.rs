//! The stages in the lifecycle of a gateway.

/// The stage in the lifecycle of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lifecycle {
    /// Ready, but no client is let in yet.
    Prepared,
    Runs,
    /// No new connections are accepted; requests in progress may finish.
    Drains,
    /// Everything that has not finished is cut off.
    Ends,
}
