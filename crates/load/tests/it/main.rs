//! The generator against small sites on loopback, each of which does one thing.
//!
//! Nothing here asserts how fast anything is: a machine under load may be late, and the generator
//! says so itself.

mod ends;
mod play;
mod sessions;
mod site;
