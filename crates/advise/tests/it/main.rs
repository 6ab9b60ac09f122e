//! Tests of advice from logs of known sites.

mod limit;
mod summary;
