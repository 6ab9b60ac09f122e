//! The shop's fixed capacity: a bounded queue, a fixed number of workers, and the demand of each
//! request.

mod burn;
mod worker;

pub(crate) use worker::Worker;
