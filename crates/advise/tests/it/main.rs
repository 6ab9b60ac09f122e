//! Tests of the advice from logs of sites with known behaviour.

mod limit;
mod populations;
mod summary;
