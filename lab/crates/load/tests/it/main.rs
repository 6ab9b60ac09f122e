//! The generator against small sites on loopback, each with a single behaviour.
//!
//! No test asserts a speed: a machine under load may be late, and the generator reports that
//! itself.

mod ends;
mod play;
mod sessions;
mod site;
