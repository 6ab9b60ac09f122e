//! All decisions of bywash, as a pure state machine.
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
mod request_table;
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
pub use request_table::{Decision, Refusal, RequestTable, Wakers};
pub use session::{Cursor, Evictions, Remembered, Slice};
pub use value::{Counts, Learn, Learned, Learning};
