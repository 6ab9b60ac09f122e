//! Tests of the configuration file: the values of a valid file, and the problems of any other file.
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]

mod agents;
mod between;
mod dataplane;
mod hostile;
mod identify;
mod levels;
mod mistakes;
mod resolved;
