//! Clients and servers in virtual time, which drive the same engine as the gateway.
//!
//! The result of a run depends only on scenario, policy, offered load, visibility of closes and
//! seed.
//!
//! # Modules
//!
//! - [`world`] is one run: an event heap, the visitors of a scenario and `workers` servers behind
//!   one [`bywash_engine::Engine`].
//! - [`lab`] runs a scenario on all cores, with each combination of its policies, loads and
//!   visibilities of closes.
//! - [`fleet`] is several gateways in front of one application.
//! - [`peers`] are the decisions of other programs, such as HAProxy, in place of the engine's.
//! - `adversary` adds hostile clients to the visitors.
//! - `application` is the interface of a group of servers. `servers` and `threads` implement it.
//!   `stations` combines them.
//!
//! # Limits of the model
//!
//! - A refusal costs nothing.
//! - A departure is noticed immediately or never.
//! - A server that learns of a departure stops at that instant and is free. Live, most applications
//!   notice only when they write.
//! - There is no network between the gateway and its servers.
//!
//! The simulator is checked against closed forms that are independent of it
//! (`tests/it/closed_forms.rs`).
#![forbid(unsafe_code)]

mod adversary;
mod application;
mod case;
mod correlation;
pub mod elephants;
mod events;
pub mod fleet;
pub mod lab;
pub mod peers;
mod phases;
mod servers;
mod slots;
mod stations;
mod threads;
mod world;

pub use adversary::AdversaryResults;
pub use bywash_discover::Correlation;
pub use case::{Case, RunOutput, Sample, Trace};
pub use correlation::{Correlations, correlations};
pub use lab::{Job, SimError, Traced, on_all_cores, run, run_all, runs, trace};
pub use phases::{Phase, phases};
pub use world::play;
