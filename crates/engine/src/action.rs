//! The actions by which the engine instructs its driver.

use bywash_units::TimeSpan;

use crate::reason::Reason;
use crate::request::RequestId;

/// An instruction to the driver, which must carry it out.
///
/// The enum is not `#[non_exhaustive]`: a new action must break the build of every driver until
/// that driver handles it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Run this request now. It holds a slot until the driver reports `Finished`, `Withdrawn` or
    /// `ClientGone`, or the engine stops it with `Terminate` or `Cancel`.
    Dispatch {
        /// The request's number.
        id: RequestId,
        /// The reason for which this request gets the slot.
        reason: Reason,
    },
    /// Refuse this request. The driver may give its number to another request from now on.
    Shed {
        /// The request's number.
        id: RequestId,
        /// The reason for the refusal.
        reason: Reason,
        /// The time after which a retry may find the queue drained. The driver adds jitter to it.
        retry_after: TimeSpan,
    },
    /// Stop this running request, and tell its client so. The engine has taken the slot back, and
    /// the request's number is free.
    Terminate {
        /// The request's number.
        id: RequestId,
        /// The reason for stopping the request.
        reason: Reason,
        /// The time after which a retry may find the queue drained. The driver adds jitter to it.
        retry_after: TimeSpan,
    },
    /// Stop this running request, whose client has left. The engine has taken the slot back, and
    /// the request's number is free.
    Cancel {
        /// The request's number.
        id: RequestId,
        /// The reason for stopping the request.
        reason: Reason,
    },
}
