//! Tests of the daemon from its clients' point of view, with real databases where necessary.
//! `scripts/with-databases` starts them. Without them, those tests print `NOT TESTED`.

#![allow(missing_docs, reason = "a test's name is what it says")]
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]
#![allow(clippy::float_cmp, reason = "samples of counters and gauges are whole numbers")]

mod authority;
mod client;
mod database_tls;
mod databases;
mod faulty_proxy;
mod messages;
mod mysql;
mod other_machines;

mod site;
mod victims;
