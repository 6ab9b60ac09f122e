//! The description of a load, and what a run of it yields.
//!
//! One TOML file says who comes (arrivals), what they do (a session graph with think times), how
//! long they wait (patience), what they do when they were disappointed (retries) and what their
//! requests cost (service demand). The simulator plays it in virtual time and the load generator
//! in real time; both draw every visitor from the same seed, so that two policies, or a
//! simulation and a live run, face the very same visitors.
//!
//! Rooms: [`file`] is a scenario, `written` its TOML, and `base` lays one file over another;
//! [`law`] draws numbers; [`graph`] knows what a session does and costs on average; [`arrivals`]
//! says when sessions start, `sets` who is always there and [`adversary`] who comes beside them; [`signal`] is what visitors
//! show of themselves; [`visitor`] is one client's behaviour as a state machine and [`source`]
//! where she comes from, a draw or a recording; [`servers`] is
//! what serves it, `threads` how requests of several tasks share it; [`tally`] counts what happened into [`result`]; `vary` changes keys of a file.
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
