//! Tests on real devices, in network namespaces that the tests create and that end with them. Where
//! a namespace cannot be created, a test prints `NOT TESTED`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod device;
mod lanes;
mod testbed;
