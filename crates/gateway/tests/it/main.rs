//! Tests of the gateway from outside: real sockets on loopback, exact bytes on both sides.
//!
//! A test plays the client (`wire`) and the upstream (`upstream`) itself, and starts a gateway
//! between them (`setup`). No test sleeps for synchronisation. An expected event is polled for,
//! with a time limit (`setup::eventually`). The absence of an event is checked after something that
//! comes later.
//!
//! Ignored tests take long; the reason of each says how long.
#![allow(missing_docs, reason = "a test's name is what it says")]
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]
#![allow(clippy::float_cmp, reason = "samples of counters and gauges are whole numbers")]

mod http2;
mod operator;
mod setup;
mod upstream;
mod wire;

mod admin;
mod admin_auth;
mod agents;
mod authenticated;
mod bypass;
mod connections;
mod deadline;
mod decisions;
mod departures;
mod details;
mod early;
mod errors;
mod events;
mod failures;
mod fields;
mod framing;
mod h2;
mod h2c;
mod held_slot;
mod history;
mod interim;
mod kept;
mod lanes;
mod learned;
mod levels;
mod life;
mod limits;
mod local_faults;
mod log;
mod malformed;
mod memory;
mod metrics;
mod modes;
mod mutated;
mod names;
mod numbers;
#[cfg(feature = "fleet")]
mod on_nats;
mod orphans;
mod overrides;
mod populations;
mod proxy_protocol;
mod queue;
mod reload;
mod request_log;
mod revenue;
mod servers;
mod session_cookie;
mod sessions;
mod slow;
mod slow_clients;
mod soak;
mod spellings;
mod static_files;
mod stop;
mod streaming;
mod targets;
mod terminate;
mod timeouts;
mod tls;
mod tokens;
mod traces;
mod trailers;
mod upgrade;
