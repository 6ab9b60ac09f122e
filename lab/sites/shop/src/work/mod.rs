//! The fixed capacity: one bounded queue, so many workers, and how a request occupies one.

mod burn;
mod worker;

pub(crate) use worker::Worker;
