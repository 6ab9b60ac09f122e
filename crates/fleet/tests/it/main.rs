//! Tests of the fleet's division of slots.
#![allow(clippy::unwrap_used, reason = "clippy takes the helpers of these tests for a library")]

mod faults;
mod properties;
mod world;
