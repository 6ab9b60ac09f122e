//! The description of a load, and the results of a run.
//!
//! One TOML file describes the arrivals, the behaviour of visitors (a session graph with think
//! times), their patience, their retries after a disappointment, and the service demand of their
//! requests. The simulator runs it in virtual time and the load generator in real time. Both draw
//! every visitor from the same seed, so that two policies, or a simulation and a live run, face the
//! same visitors.
//!
//! # Modules
//!
//! - [`file`] is a scenario, `written` its TOML form, and `base` merges one file into another;
//!   `vary` changes keys of a file.
//! - [`law`] draws random numbers. [`graph`] defines sessions and their average cost.
//! - [`arrivals`] says when sessions start. `sets` are permanent clients, and [`adversary`] hostile
//!   ones.
//! - [`visitor`] is the behaviour of one client as a state machine, and [`signal`] the signals that
//!   it shows. [`source`] supplies visitors, drawn or recorded.
//! - [`servers`] describes the servers, and `threads` how requests of several tasks share them.
//! - [`tally`] counts events into [`result`].
#![forbid(unsafe_code)]

pub mod adversary;
pub mod arrivals;
mod base;
pub mod file;
pub mod graph;
pub mod law;
mod lines;
mod policies;
mod response;
pub mod result;
pub mod servers;
pub mod service;
mod sets;
mod shift;
mod signal;
pub mod source;
mod stations;
pub mod tally;
mod threads;
mod throttle;
mod vary;
pub mod visitor;
mod written;
mod wrong;

pub use adversary::{Adversary, Claims, Hostile};
pub use arrivals::Profile;
pub use file::{Charge, Closes, PartChoice, PolicyChoice, Scenario, ScenarioError, Tier, WaitsFor};
pub use graph::Graph;
pub use law::{Law, Stream};
pub use result::{
    Cell, ClassCell, Distribution, Recovery, RunResult, Second, SeedFigures, TierResponses,
};
pub use servers::{Change, Departures, Discipline, Servers, Station, To};
pub use service::Service;
pub use sets::{Client, ClientSet};
pub use shift::Shift;
pub use signal::{Shown, Signal};
pub use source::{Recording, Source};
pub use tally::{Ending, Of, Tally, standard_error};
pub use threads::{Parallel, Promise, Scheduler, Threads};
pub use throttle::Throttle;
pub use vary::{Setting, guess};
pub use visitor::{Attempt, Next, Visit, Visitor};
