//! What operators are told and may say: the shapes of the API under `/v1`, and the `OpenAPI` document that describes them.
//!
//! The gateway writes these, `bywash` and the console read them, and the document ([`openapi`]) is made of the same
//! types, so none of them can differ from the others. What was decided of elephants and overrides has its shapes in
//! `bywash_control`, what became of requests in `bywash_history`; they are part of the document like these.
//!
//! **Version.** Within `/v1` fields are added, and none is taken away or gets another meaning. Whoever reads leaves alone
//! what it does not know. What is said *to* the gateway is read strictly: a field that it does not know is an error,
//! as it would otherwise be ignored.
//!
//! **Units.** They end the name: `_ms`, `_us`, `_s`, `_bytes`, `per_s`. A share is a part of one. A moment `_ms` is in milliseconds since
//! 1970; one without a unit is text (RFC 3339).
//!
//! # Rooms
//!
//! `routes` is the one table of what can be asked; `openapi` writes it down. The others are the shapes, by what they are
//! about.
#![forbid(unsafe_code)]

mod elephants;
mod lab;
mod openapi;
mod policy;
mod problem;
mod requests;
mod routes;
mod sessions;
mod status;

pub use elephants::{
    Answers, Ask, Decision, Elephant, Elephants, Evidence, Kind, KindUse, Kinds, Lanes, Looked,
    Preview, Previewed, Use,
};
pub use lab::{LabResult, LabResults};
pub use openapi::openapi;
pub use policy::{Audit, ClassPolicy, Exported, Mode, Policy, SetBypass, SetClass, Undo};
pub use problem::{Code, Problem, Proof};
pub use requests::{Explained, Life, Request, Requests};
pub use routes::{Access, Body, Route, routes};
pub use sessions::{ClassLearned, Sessions, SessionsEvicted, SignalsSeen};
pub use status::{
    ClassStatus, CookieStatus, MemoryStatus, OutcomeCounts, PolicyInForce, Revisions, ServerStatus,
    SessionCookieStatus, Status,
};
