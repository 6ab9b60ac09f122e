//! On real devices, in network namespaces that the tests make and that go with them. Where none can be
//! made they say `NOT TESTED`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod device;
mod lanes;
mod place;
