//! Tests of the load generator against small sites on loopback, each with a single behaviour.
//!
//! No test asserts a speed. A machine under load may be late, and the load generator reports that
//! itself.

mod ends;
mod play;
mod sessions;
mod site;
