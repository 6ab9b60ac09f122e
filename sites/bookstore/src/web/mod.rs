//! The HTTP side: requests are read, queued, and answered. The thread is [`bywash_site::Door`]'s.

mod exchange;
mod page;
mod refusal;
mod respond;
mod route;

pub(crate) use refusal::Refusal;
