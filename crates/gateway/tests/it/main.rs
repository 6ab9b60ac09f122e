//! The gateway from outside: real sockets on loopback, exact bytes on both sides.
//!
//! A test plays the client (`wire`) and the upstream (`upstream`) itself and starts a gateway
//! between them (`setup`). Nothing sleeps to let something happen: what must come about is
//! polled for, with a bound (`setup::eventually`); what must not is checked after something that
//! comes later.
//!
//! Tests that are ignored show known faults; their reason says which.
#![allow(missing_docs, reason = "a test's name is what it says")]
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]
#![allow(clippy::float_cmp, reason = "samples of counters and gauges are whole numbers")]

mod setup;
mod upstream;
mod wire;

mod admin;
mod departures;
mod early;
mod failures;
mod fields;
mod framing;
mod kept;
mod life;
mod limits;
mod log;
mod malformed;
mod modes;
mod mutated;
mod queue;
mod sessions;
mod soak;
mod stop;
mod streaming;
mod targets;
