//! The fixed capacity: one bounded queue, so many workers, and how a request occupies one.

mod burn;
mod worker;
use bywash_site::Reply;

use crate::ask::Ask;
use crate::store::Answer;

pub(crate) use worker::Worker;

/// A request on its way to a worker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) ask: Ask,
    /// Closed as soon as the client has left. Dropped unused, it tells the HTTP side that the shop
    /// gave the request up.
    pub(crate) reply: Reply<Answer>,
}
