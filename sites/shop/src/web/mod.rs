//! The HTTP side: one thread that reads requests, queues them, and writes answers.
//!
//! It never blocks and does no work of the shop's own, so that a departing client is seen at once,
//! whatever the workers are doing: hyper then drops the future of the exchange, and with it the
//! receiver that the worker's answer would have gone to.

mod connection;
mod exchange;
mod page;
mod refusal;
mod respond;
mod route;

pub(crate) use connection::run;
pub(crate) use refusal::Refusal;
