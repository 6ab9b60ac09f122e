//! The stages in the lifecycle of a gateway.

/// The stage in the lifecycle of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lifecycle {
    /// Ready, but no client is let in yet.
    Prepared,
    Runs,
    /// No new connections are accepted; requests in progress may finish.
    Drains,
    /// The gateway cuts off all requests that have not finished.
    Ends,
}
