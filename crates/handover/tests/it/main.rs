//! Tests of handover, socket activation, notifications and saving, between real processes.
//!
//! The other process is this test binary again: see `roles.rs`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod activation;
mod failures;
mod kill_points;
mod notifications;
mod roles;
mod service;
mod upgrades;
