//! All decisions of bywash, as a pure state machine.
//!
//! The machine is a function `(state, now, event) → actions`. It has no I/O, no clock, no
//! randomness and no threads: time and measurements are arguments. The gateway drives it with the
//! operating system's clock, and the simulator with an event heap. Both run the same code. The
//! crate is `no_std`, so a policy that reads a clock or opens a socket does not compile.
//!
//! [`Engine`] is the state machine. [`Event`] goes in, [`Action`] comes out, each with a
//! [`Reason`]. [`RequestTable`] carries out the actions for drivers in which each request has a
//! task.
//!
//! # Modules
//!
//! The list begins with the lowest module. A module uses only modules before it in this list, which
//! `scripts/check-modules` checks.
//! - `request.rs`: a request as the engine sees it. `reason.rs`: the reason for a decision.
//! - `parameters.rs`: the parameters of policies. `mean_service.rs`: the mean service time.
//! - `event.rs`: the engine's input. `action.rs`: the engine's output.
//! - `lists.rs`: the doubly linked lists of every queue. `retry_after.rs`: when refused clients may
//!   retry.
//! - `classify/`: maps method and path to a class.
//! - `value/`: learns what requests are worth.
//! - `session/`: remembers which classes each session has been served.
//! - `recent.rs`: a table of keys that were noted recently.
//! - `population/`: ranks the first requests of new sessions by the populations of their clients.
//! - `limit/`: decides how many requests run at once, one file per policy.
//! - `terminate/`: decides how long a request may run, one file per policy.
//! - `overload/`: decides whether there is overload, one file per detector.
//! - `queue/`: decides which waiting request gets the next slot, one file per policy.
//! - `throttle/`: delays requests that an operator's approved rules apply to.
//! - `catalog/`: the one list of policies and their parameters.
//! - `engine/`: the state machine.
//! - `request_table.rs`: the engine, and the task that waits for each of its requests.
//! - `levels/`: decides how many threads of a pool a request gets. It is a separate state machine,
//!   for applications.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod action;
pub mod catalog;
pub mod classify;
mod engine;
mod event;
pub mod levels;
pub mod limit;
mod lists;
mod mean_service;
pub mod overload;
mod parameters;
mod population;
pub mod queue;
mod reason;
mod recent;
mod request;
mod request_table;
mod retry_after;
pub mod session;
pub mod terminate;
pub mod throttle;
pub mod value;

pub use action::Action;
pub use engine::{Engine, Offered, Options, Status};
pub use event::{AnswerKind, End, Event, Meter, Reading, Service};
pub use mean_service::MeanService;
pub use population::{MAX_POPULATION_LEVEL, Population, RememberedPopulations};
pub use reason::{Outcome, Reason};
pub use request::{
    AddressKey, AttemptKey, Bounds, Class, ClassId, ClassSet, PopulationKey, Request, RequestId,
    RuleId, SessionKey, Signals, Standing, TargetKey, Tier, Upload, VisitorKey,
};
pub use request_table::{Decision, Refusal, RequestTable, Wakers};
pub use session::{Cursor, Evictions, Remembered, Slice};
pub use value::{Counts, Learn, Learned, Learning, OtherCounts};
