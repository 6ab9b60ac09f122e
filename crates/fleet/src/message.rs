//! The messages between gateways and allocators.

use bywash_units::TimeSpan;
use serde::{Deserialize, Serialize};

use crate::demand::Demand;

/// The end of the valid numbers of reports and grants. No honest run counts that far.
pub(crate) const MAX_NUMBER: u64 = 1 << 62;

/// The name of a gateway, as a number that its driver derives from the configured name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId(pub u64);

/// One run of a gateway's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The gateway.
    pub member: MemberId,
    /// A random number that the program draws at its start. It tells apart a program from an
    /// earlier run, and from another program with the same name.
    pub run: u64,
}

/// A gateway's report to the allocator that it follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The gateway.
    pub from: Identity,
    /// The allocator.
    pub to: Identity,
    /// The number of the report. A run of a gateway numbers its reports in ascending order, from 1.
    pub number: u64,
    /// The number of the last grant of this allocator that the gateway has accepted; 0 if none.
    pub accepted: u64,
    /// Whether the gateway leaves its share to the allocator for [`Settings::pledge`] from now on.
    ///
    /// [`Settings::pledge`]: crate::Settings::pledge
    pub pledges: bool,
    /// The gateway's own share, in slots.
    pub share: u32,
    /// The number of slots that the gateway has, or of requests that hold one if that is higher.
    pub held: u32,
    /// The work that the gateway is offered.
    pub demand: Demand,
}

/// An allocator's answer to a report: a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The allocator.
    pub from: Identity,
    /// The gateway.
    pub to: Identity,
    /// The number of the grant. An allocator numbers the grants to a gateway in ascending order,
    /// from 1.
    pub number: u64,
    /// The number of the report that this grant answers.
    pub answers: u64,
    /// The number of slots of the lease.
    pub slots: u32,
    /// The duration of the lease, from the time at which the answered report was sent.
    #[serde(with = "nanoseconds")]
    pub term: TimeSpan,
}

/// A message by which a gateway offers to be the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The gateway.
    pub from: Identity,
}

/// Writes a duration as a number of nanoseconds.
mod nanoseconds {
    use bywash_units::TimeSpan;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(span: &TimeSpan, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_nanos())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TimeSpan, D::Error> {
        u64::deserialize(from).map(TimeSpan::from_nanos)
    }
}
