//! The description of a load, and the results of a run.
//!
//! One TOML file describes the arrivals, the behaviour of visitors (a session graph with think
//! times), their patience, their retries after a failure, and the service demand of their requests.
//! The simulator runs this scenario in virtual time and the load generator in real time. Both draw
//! every visitor from the same seed. Two policies, or a simulation and a live run, therefore face
//! the same visitors.
//!
//! # Modules
//!
//! Lowest first. A module uses only modules above it in this list; `scripts/check-modules` checks
//! this.
//! - `error.rs`: the error of a scenario file. `problems.rs` collects all errors of a file,
//!   `lines.rs` finds their lines, and `text.rs` reads files and durations.
//! - `distribution.rs`: random numbers and distributions. `service.rs`: service demands.
//!   `shift.rs`: their temporary changes.
//! - `threads.rs`: how requests of several tasks share the servers. `servers.rs`: the servers.
//!   `stations.rs`: the form of servers next to the application.
//! - `class.rs`: the classes of requests. `graph.rs`: sessions and their average cost.
//! - `throttle.rs`, `policies.rs`: the policies to run.
//! - `arrivals.rs`: when sessions start. `client.rs`: how clients behave. `signal.rs`: the signals
//!   that they show. `sets.rs`: sets of permanent clients. `adversary.rs`: hostile clients.
//!   `source.rs`: drawn or recorded visitors.
//! - `file/`: a scenario. `raw/`: its TOML form. `base.rs`: reads a file and merges it into
//!   its base. `vary.rs`: changes keys of a file.
//! - `visitor.rs`: one client as a state machine. `permanent.rs`: the permanent clients of a run.
//! - `result.rs`: the results of a run. `response.rs`: response times. `tally/`: counts events and
//!   turns the counts into a result.
//!
//! Reading a file reports all of its errors at once, each with its line if that is known.
#![forbid(unsafe_code)]

pub mod adversary;
pub mod arrivals;
mod base;
mod class;
pub mod client;
pub mod distribution;
mod error;
pub mod file;
pub mod graph;
mod lines;
mod permanent;
mod policies;
mod problems;
mod raw;
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
mod text;
mod threads;
mod throttle;
mod vary;
pub mod visitor;

pub use adversary::{Adversary, Claims, Hostile};
pub use arrivals::Profile;
pub use class::{Class, Tier};
pub use client::{Closes, WaitsFor};
pub use distribution::{Distribution, Stream};
pub use error::ScenarioError;
pub use file::Scenario;
pub use graph::Graph;
pub use permanent::Client;
pub use policies::{Mode, PartChoice, PolicyChoice, PrincipalKind};
pub use result::{
    ClassRow, Decisions, EmpiricalCdf, Recovery, ResultRow, RunResult, Second, SeedFigures,
    TierResponses,
};
pub use servers::{Change, Departures, Discipline, Servers, Station, To};
pub use service::Service;
pub use sets::ClientSet;
pub use shift::Shift;
pub use signal::{Shown, Signal};
pub use source::{Recording, Source, Visit};
pub use tally::{Decision, Of, Tally, standard_error};
pub use threads::{Parallel, Promise, ThreadScheduler, Threads};
pub use throttle::Throttle;
pub use vary::{Setting, guess};
pub use visitor::{Attempt, Ending, Next, Visitor};
