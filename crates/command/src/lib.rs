//! Parts that the commands of `bywash` share: failures with their exit codes, output, signals, and
//! the client of a gateway's admin listener.
#![forbid(unsafe_code)]

pub mod admin_client;
pub mod browser;
pub mod elephant_text;
mod failure;
pub mod operators;
pub mod replace;
pub mod request_text;
pub mod signals;
pub mod streams;
pub mod which;

pub use failure::Failure;
