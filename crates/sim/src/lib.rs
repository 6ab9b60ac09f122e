//! Clients and servers in virtual time, driving the very engine that the gateway drives.
//!
//! [`world`] is one run: an event heap, the visitors of a scenario and `workers` servers behind
//! one [`bywash_engine::Engine`]. A run is a pure function of scenario, policy, level of load,
//! visibility of closes and seed. [`lab`] runs all cells of a scenario on all cores.
//! [`peers`] are what other programs would decide in the engine's place. `adversary` is
//! who comes beside the visitors and means harm.
//!
//! The model is honest about what it leaves out: refusing costs nothing, a departure is noticed
//! at once or never, a server that is told of a departure stops at that instant and is free (live,
//! most applications notice only when they write), and nothing lies between the gateway and its
//! servers. What happens inside the application is in `servers`. It is checked against closed forms that it did not produce (`tests/closed_forms.rs`).
#![forbid(unsafe_code)]

mod adversary;
mod case;
mod correlation;
pub mod elephants;
mod events;
pub mod lab;
pub mod peers;
mod phases;
mod servers;
mod slots;
mod stations;
mod threads;
mod world;

pub use adversary::Got;
pub use bywash_discover::Correlation;
pub use case::{Case, Outturn, Sample, Trace};
pub use correlation::{Correlations, correlations};
pub use lab::{Job, SimError, Traced, on_all_cores, run, run_all, runs, trace};
pub use phases::{Phase, phases};
pub use world::play;
