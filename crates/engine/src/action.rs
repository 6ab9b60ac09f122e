//! Actions: the engine's instructions to its driver.

use bywash_units::TimeSpan;

use crate::reason::Reason;
use crate::request::RequestId;

/// An instruction to the driver.
///
/// The enum is not `#[non_exhaustive]`: a new action must break the build of every driver until
/// that driver handles it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Run this request now. It holds a slot until `Finished`, `Withdrawn`, `ClientGone` or
    /// `Terminate`.
    Dispatch {
        /// The request's number.
        id: RequestId,
        /// Why this request runs, and why now.
        reason: Reason,
    },
    /// Refuse this request. Its number is free.
    Shed {
        /// The request's number.
        id: RequestId,
        /// Why the request is refused.
        reason: Reason,
        /// The time after which a retry may find the queue drained; the driver adds jitter.
        retry_after: TimeSpan,
    },
    /// Stop this running request and tell its client so. The engine has taken its slot back, and
    /// its number is free.
    Terminate {
        /// The request's number.
        id: RequestId,
        /// Why the request is stopped.
        reason: Reason,
        /// The time after which a retry may find the queue drained; the driver adds jitter.
        retry_after: TimeSpan,
    },
    /// Stop this running request because its client has left. The engine has taken its slot back,
    /// and its number is free.
    Cancel {
        /// The request's number.
        id: RequestId,
        /// Why the request is stopped.
        reason: Reason,
    },
}
