//! Clients and servers in virtual time, driving the very engine that the gateway drives.
//!
//! [`world`] is one run: an event heap, the visitors of a scenario and `workers` servers behind
//! one [`bywash_engine::Engine`]. A run is a pure function of scenario, policy, level of load,
//! visibility of closes and seed. [`lab`] runs all cells of a scenario on all cores.
//! [`peers`] are what other programs would decide in the engine's place.
//!
//! The model is honest about what it leaves out: refusing costs nothing, a departure is noticed
//! at once or never, a server that is told of a departure stops at that instant and is free (live,
//! most applications notice only when they write), and a server's speed does not depend on how
//! many run beside it. It is
//! checked against closed forms that it did not produce (`tests/closed_forms.rs`).
#![forbid(unsafe_code)]

mod events;
pub mod lab;
pub mod peers;
mod world;

pub use lab::{Job, SimError, run, run_all, runs};
pub use world::{Case, Outturn, play};
