//! The data types of the operators' API under `/v1`, and the `OpenAPI` document that describes
//! them.
//!
//! The gateway writes these types, and `bywash` and the console read them. [`openapi`] generates
//! the document from the same types, so that they always agree. The types for decisions about
//! elephants and for overrides are in `bywash_control`. The types for the history of outcomes are
//! in `bywash_history`. The document contains those types as well.
//!
//! **Version.** Within `/v1`, fields are added, but no field is removed or changes its meaning. A
//! client ignores fields that it does not know. The gateway reads request bodies strictly: an
//! unknown field is an error, because it would otherwise be ignored without notice.
//!
//! **Units.** A name ends with its unit: `_ms`, `_us`, `_s`, `_bytes`, `per_s`. A share is a
//! fraction of one. A timestamp that ends with `_ms` is in milliseconds since 1970; a timestamp
//! without a unit is text (RFC 3339).
//!
//! # Modules
//!
//! `endpoints` is the table of all operations; `openapi` generates the document from it. `reason`
//! lists the reasons of decisions for the document. Each of the other modules has the data types of
//! one subject.
#![forbid(unsafe_code)]

mod elephants;
mod endpoints;
mod fleet;
mod lab;
mod openapi;
mod policy;
mod populations;
mod problem;
mod reason;
mod requests;
mod sessions;
mod status;

pub use elephants::{
    Answers, Ask, Decision, Elephant, Elephants, Evidence, Lanes, Preview, Previewed, Route,
    RouteUse, Routes, Use, WatchedResource,
};
pub use endpoints::{Access, Body, Endpoint, endpoints};
pub use fleet::{Fleet, FleetGateway};
pub use lab::{LabResult, LabResults};
pub use openapi::openapi;
pub use policy::{
    Audit, ClassPolicy, Exported, Mode, Policy, RankPopulation, SetBypass, SetClass, Undo,
};
pub use populations::{Population, Populations};
pub use problem::{Code, Problem, Proof};
pub use requests::{Explained, Request, RequestLifecycle, Requests};
pub use sessions::{ClassLearned, Sessions, SessionsEvicted, SignalsSeen};
pub use status::{
    ClassStatus, CookieStatus, MemoryStatus, PolicyInForce, Revisions, ServerStatus,
    SessionCookieStatus, StandingCounts, Status,
};
