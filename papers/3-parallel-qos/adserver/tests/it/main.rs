//! Tests of the ad server from outside: over real sockets, with a real database file.
#![allow(clippy::unwrap_used, reason = "clippy takes the helpers of these tests for a library")]

mod binary;
#[path = "../../../../../lab/sites/server/testing/client.rs"]
#[allow(dead_code, reason = "there are no sessions here")]
mod client;
mod contracts;
mod gateway;
mod kill;
mod levels;
mod pages;
#[path = "../../../../../lab/sites/server/testing/program.rs"]
mod program;
mod publishers;
mod refusal;
mod site;
