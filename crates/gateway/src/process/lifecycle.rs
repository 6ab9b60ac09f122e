//! The stages in the lifecycle of a gateway.

/// The stage in the lifecycle of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lifecycle {
    /// The gateway is ready, and does not accept connections of clients yet.
    Prepared,
    Runs,
    /// The gateway accepts no new connections. Requests in progress may finish.
    Drains,
    /// The gateway cuts off all requests that have not finished.
    Ends,
}
