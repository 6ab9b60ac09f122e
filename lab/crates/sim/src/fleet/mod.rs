//! A fleet of gateways in front of one application, in virtual time.
//!
//! Each gateway is an [`Engine`](bywash_engine::Engine) of its own with the state machines of
//! [`bywash_fleet`]. Their messages travel through a network that delays and loses them. The
//! application has as many workers as the fleet has slots.
//!
//! Visitors arrive at random, each at one gateway, and leave if their patience ends before the
//! response. A part of the requests is valuable: a transaction of a proven session, which the
//! scheduler `session-first` starts before all others. The result is the share of the valuable
//! requests that were answered in time. How much of that a division loses shows by comparison with
//! [`Division::OneQueue`] for the same visitors.

mod event;
mod faults;
mod traffic;
mod world;

use bywash_units::{Ratio, TimeSpan};

pub use faults::Fault;
pub use world::play;

/// How the slots of the application are divided among the gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// All requests wait in one queue, as if there were only one gateway.
    OneQueue,
    /// Each gateway has its equal share.
    Even,
    /// Leases by the work that arrives, whatever its rank.
    ByArrivals,
    /// Leases by the work of each rank.
    ByRank,
}

impl Division {
    /// All divisions.
    pub const ALL: [Self; 4] = [Self::OneQueue, Self::Even, Self::ByArrivals, Self::ByRank];

    /// Returns the name for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneQueue => "one queue",
            Self::Even => "even split",
            Self::ByArrivals => "leases by arrivals",
            Self::ByRank => "leases by rank",
        }
    }
}

/// The input of a run.
#[derive(Clone, Copy, Debug)]
pub struct FleetCase {
    /// The number of gateways.
    pub gateways: u32,
    /// The number of slots of the whole fleet.
    pub slots: u32,
    /// The mean time that the application works on a request.
    pub service: TimeSpan,
    /// The offered work, relative to what the slots can do.
    pub load: f64,
    /// The arrivals at the busiest gateway, relative to those at the least busy one.
    pub skew: f64,
    /// Whether each gateway has a share of valuable requests of its own. Otherwise it is the same
    /// everywhere.
    pub own_mixes: bool,
    /// The time after which the arrivals at all gateways change places; `None` for never.
    pub moves: Option<TimeSpan>,
    /// The longest delay of a message between gateways.
    pub delay: TimeSpan,
    /// The share of the messages between gateways that are lost.
    pub lost: Ratio,
    /// The fault that one gateway after the other has, and how long each has it; `None` if no gateway
    /// fails. With [`Division::OneQueue`] none does.
    pub faults: Option<(Fault, TimeSpan)>,
    /// How the slots are divided.
    pub division: Division,
    /// How long visitors arrive and count. Ten seconds before are not counted.
    pub lasts: TimeSpan,
    /// The seed from which visitors and delays are drawn.
    pub seed: u64,
}

/// The output of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetOutput {
    /// The number of valuable requests.
    pub valuable: u64,
    /// The number of valuable requests that were answered in time.
    pub answered: u64,
    /// The number of other requests that were answered in time.
    pub others: u64,
    /// The most requests that were in the application at once. Those whose gateway has ended count.
    pub most_running: u32,
    /// The most slots that all gateways together had at once.
    pub most_slots: u32,
    /// The number of messages between gateways.
    pub messages: u64,
}

impl FleetOutput {
    /// Returns the share of the valuable requests that were answered in time.
    pub fn share(&self) -> f64 {
        self.answered as f64 / self.valuable.max(1) as f64
    }
}
