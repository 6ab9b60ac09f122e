//! Tests of the shop from outside: over real sockets, with a real database file.
#![allow(clippy::unwrap_used, reason = "clippy takes the helpers of these tests for a library")]

mod binary;
mod capacity;
#[path = "../../../server/testing/client.rs"]
mod client;
mod departure;
#[path = "../../../server/testing/program.rs"]
mod program;
mod refusal;
mod site;
mod walk;
