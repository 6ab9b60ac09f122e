//! Tests of the load generator with small sites on loopback, each of which behaves in one fixed
//! way.
//!
//! No test asserts a speed. A machine under load may be slow, and the load generator itself reports
//! its lag.

mod ends;
mod play;
mod sessions;
mod site;
