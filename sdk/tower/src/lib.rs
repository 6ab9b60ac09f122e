#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! [`Controller`] counts, by [`Class`]; [`Token`] is one request; [`TerminateLayer`] connects both to tower. The
//! contract is in `sdk/README.md`, the same for every language.
#![forbid(unsafe_code)]

mod answer;
mod class;
mod controller;
mod layer;
mod token;

pub use answer::HEADER;
pub use class::{Class, SettingError};
pub use controller::{Controller, Handle, Stats};
pub use layer::{Running, TerminateLayer, Terminating};
pub use token::{Reason, Terminated, Token};
