//! The clock for leases of slots, which also goes on while the machine is suspended.

use bywash_units::Time;
use rustix::time::{ClockId, clock_gettime};

/// Returns the time since the machine was started.
pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::Boottime);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
