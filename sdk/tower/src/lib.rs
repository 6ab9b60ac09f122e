#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! [`Controller`] counts requests per [`Class`]. [`Token`] stands for one request.
//! [`TerminateLayer`] connects both to tower. The contract is in `sdk/README.md` and is the same
//! for every language.
#![forbid(unsafe_code)]

mod admission;
mod answer;
mod class;
mod controller;
mod layer;
#[cfg(feature = "stop-client")]
mod lease;
mod request;
#[cfg(feature = "stop-client")]
mod stop_client;
mod terminated;
mod token;

pub use admission::{
    Admission, AdmissionError, AdmissionLayer, AdmissionSettings, AdmissionStats, Admitting,
    Refused,
};
pub use bywash_engine::Tier;
pub use bywash_lease::{DatabaseName, NotAName, RequestId};
pub use class::{Class, SettingError};
pub use controller::{Controller, Handle, Stats};
pub use layer::{Running, TerminateLayer, Terminating};
#[cfg(feature = "stop-client")]
pub use lease::{LeaseError, Leased, Own};
pub use request::{Brought, HEADER, REQUEST_HEADER};
#[cfg(feature = "stop-client")]
pub use stop_client::{StopClient, StopClientStats};
pub use terminated::{Reason, Terminated};
pub use token::Token;
