//! Every decision of bywash, as a pure state machine.
//!
//! `(state, now, event) → actions`: no I/O, no clock, no entropy, no threads. Time and measurements
//! are arguments. The gateway drives the engine with the operating system's clock, the simulator
//! drives it with an event heap, and both run the same code. The crate is `no_std`: a policy that
//! reads a clock or opens a socket does not compile.
//!
//! Where to look:
//! - [`Engine`] is the state machine. [`Event`] goes in, [`Action`] comes out, each with a
//!   [`Reason`].
//! - [`queue`] decides which waiting request gets the next slot, one file per policy.
//! - [`limit`] decides how many requests run at once, one file per policy.
//! - [`levels`] decides how many threads of a pool a request gets. It is a separate state machine,
//!   for applications.
//! - [`terminate`] decides how long a request may run, one file per policy.
//! - [`throttle`] delays requests that an operator's approved rules apply to.
//! - [`overload`] decides whether there is overload, one file per detector.
//! - [`session`] remembers which classes each session has been served.
//! - [`value`] learns what requests are worth.
//! - [`retry`] recognises repeated requests and computes `Retry-After` times.
//! - [`classify`] maps method and path to a class.
//! - [`catalog`] is the one list of policies and their parameters.
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
pub mod queue;
mod reason;
mod request;
pub mod retry;
pub mod session;
pub mod terminate;
pub mod throttle;
pub mod value;

pub use action::Action;
pub use engine::{Engine, Options, Status};
pub use event::{AnswerKind, End, Event, Meter, Reading, Service};
pub use mean_service::MeanService;
pub use reason::{Outcome, Reason};
pub use request::{
    AddressKey, AttemptKey, Bounds, Class, ClassId, ClassSet, Request, RequestId, RuleId,
    SessionKey, Signals, Standing, Tier, Upload,
};
pub use session::{Cursor, Evictions, Remembered, Slice};
pub use value::{Counts, Learn, Learned, Learning};
