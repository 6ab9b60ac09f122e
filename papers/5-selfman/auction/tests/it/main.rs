//! Tests of the auction from outside: over real sockets, on every available database.
#![allow(clippy::unwrap_used, reason = "clippy takes the helpers of these tests for a library")]

mod binary;
#[allow(dead_code, reason = "these tests leave nobody and need no sessions")]
#[path = "../../../../../lab/sites/server/testing/client.rs"]
mod client;
#[path = "../../../../../lab/sites/server/testing/program.rs"]
mod program;
mod refusal;
mod rules;
mod site;
mod walk;
