//! Every decision of bywash, as a pure state machine.
//!
//! `(state, now, event) → actions`: no I/O, no clock, no entropy, no threads. Time and readings
//! come in as arguments, so the gateway can drive it with the operating system's clock and the
//! simulator with an event heap, and both run the very same code. The crate is `no_std`: reading
//! a clock or opening a socket in a policy does not compile.
//!
//! Where to look:
//! - [`Engine`] is the machine; [`Event`] goes in, [`Action`] comes out, each with a [`Reason`].
//! - [`queue`] decides which waiting request gets the next slot, one file per policy.
//! - [`limit`] decides how many requests run at once, one file per policy.
//! - [`levels`] decides how many threads of a pool a request gets: a machine of its own, for applications.
//! - [`terminate`] decides how long a request may run, one file per policy.
//! - [`throttle`] holds back what an operator has approved rules for.
//! - [`overload`] decides whether it is overload, one file per detector.
//! - [`session`] remembers which sessions have been served what.
//! - [`value`] learns what requests are worth; [`retry`] knows repetitions and when to come again.
//! - [`classify`] turns method and path into a class.
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
pub mod overload;
mod pace;
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
pub use pace::Pace;
pub use reason::{Outcome, Reason};
pub use request::{
    AddressKey, AttemptKey, Class, ClassId, ClassSet, Request, RequestId, SessionKey, Signals,
    Standing, Tier, Upload,
};
pub use session::{Cursor, Evictions, Remembered, Slice};
pub use value::{Counts, Learn, Learned, Learning};
