//! How several gateways in front of one application divide its slots.
//!
//! Each gateway owns an equal *share* of the slots, which no message can take away. A gateway that
//! is in contact with an *allocator* pledges its share to it for a short time. The allocator
//! divides the pledged shares among the gateways that pledged them: it grants a *lease*, a number
//! of slots with an end, to each. A gateway pledges to one allocator at a time, and an allocator
//! grants only what was pledged to it. So the gateways together never have more slots than their
//! shares, however many allocators there are and whichever messages are lost, late, repeated or
//! reordered. A gateway without contact returns to its own share.
//!
//! Everything is a pure state machine: time is an argument, messages go in and out as values. The
//! simulator and the gateway run the same code.
//!
//! # Time
//!
//! No message contains a time of day, so wrong clocks do no harm. Each side measures the end of a
//! lease or pledge from an event that happened before the other side's: see [`Member`] and
//! [`Allocator`]. The clocks' *rates* may differ by [`Settings::DRIFT`].
//!
//! # Modules
//!
//! The lowest come first. A module uses only modules before it in this list, which
//! `scripts/check-modules` checks.
//! - `settings.rs`: the terms of pledges and leases.
//! - `demand.rs`: how much work a gateway is offered, by rank.
//! - `message.rs`: the messages between gateways and allocators.
//! - `divide.rs`: divides slots by demand.
//! - `member.rs`: the state machine of a gateway.
//! - `allocator.rs`: the state machine of the allocator.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allocator;
mod demand;
mod divide;
mod member;
mod message;
mod settings;

pub use allocator::{Allocator, Ignored};
pub use demand::{Demand, DemandMeter, RANKS, Rank};
pub use divide::divide;
pub use member::{Holding, Member};
pub use message::{Announcement, Grant, Identity, MemberId, Report};
pub use settings::Settings;
