//! The terms of pledges and leases.

use bywash_units::TimeSpan;

/// The terms that all gateways of a fleet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The number of gateways that the fleet's slots are divided by. A fleet must not have more.
    pub gateways: u32,
    /// The time between two reports of a gateway, and between two rounds of grants.
    pub heartbeat: TimeSpan,
    /// How long a gateway leaves its share to the allocator after it has sent a report.
    pub pledge: TimeSpan,
}

impl Settings {
    /// The largest difference between the rates of two clocks, as a fraction: one part in 16.
    pub const DRIFT: u64 = 16;

    /// Creates the default terms for this number of gateways, at least one: a heartbeat of 200 ms,
    /// and pledges for 2 s.
    pub fn new(gateways: u32) -> Self {
        Self {
            gateways: gateways.max(1),
            heartbeat: TimeSpan::from_millis(200),
            pledge: TimeSpan::from_secs(2),
        }
    }

    /// Returns a gateway's share of the fleet's slots.
    ///
    /// A limit that cannot be divided leaves a remainder that no gateway owns. If there are fewer
    /// slots than gateways, each owns one nevertheless, because a gateway without a slot would
    /// refuse every request.
    pub fn share(self, limit: u32) -> u32 {
        (limit / self.gateways).max(1)
    }

    /// Returns the time without any message from the allocator after which a gateway no longer
    /// pledges.
    pub(crate) fn silence(self) -> TimeSpan {
        self.heartbeat * 3
    }

    /// Returns the shortest lease that an allocator grants.
    pub(crate) fn shortest(self) -> TimeSpan {
        self.heartbeat * 2
    }

    /// Returns the duration of a pledge that an allocator relies on. It is shorter than
    /// [`Settings::pledge`], because the gateway's clock may be faster.
    pub(crate) fn reliable(self) -> TimeSpan {
        self.pledge * (Self::DRIFT - 1) / Self::DRIFT
    }
}
