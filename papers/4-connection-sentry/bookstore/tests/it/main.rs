//! Tests of the store from outside: over real sockets, on every available database.
#![allow(clippy::unwrap_used, reason = "clippy takes the helpers of these tests for a library")]

mod binary;
mod cancelled;
#[path = "../../../../../lab/sites/server/testing/client.rs"]
mod client;
mod crash;
mod databases;
mod forwarder;
mod leases;
mod orders;
mod orphans;
mod pages;
#[path = "../../../../../lab/sites/server/testing/program.rs"]
mod program;
mod refusal;
mod site;
