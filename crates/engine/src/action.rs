//! What the engine tells its driver to do.

use bywash_units::Span;

use crate::reason::Reason;
use crate::request::RequestId;

/// An order to the driver. Not `#[non_exhaustive]`: a new action must break the build of every
/// driver until it is handled there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Run this request now. It holds a slot until `Finished` or `ClientGone`.
    Dispatch {
        /// Which.
        id: RequestId,
        /// Why it and why now.
        reason: Reason,
    },
    /// Refuse this request. Its number is free.
    Shed {
        /// Which.
        id: RequestId,
        /// Why.
        reason: Reason,
        /// When a retry may find the queue drained; the driver adds jitter.
        retry_after: Span,
    },
    /// Stop this running request, as it has become too long, and tell its client so: its slot has been
    /// taken back and its number is free.
    Terminate {
        /// Which.
        id: RequestId,
        /// Why.
        reason: Reason,
        /// When a retry may find the queue drained; the driver adds jitter.
        retry_after: Span,
    },
    /// Nobody wants this running request any more, stop it: its slot has been taken back and its number is free.
    Cancel {
        /// Which.
        id: RequestId,
        /// Why.
        reason: Reason,
    },
}
