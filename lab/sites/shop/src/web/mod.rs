//! The HTTP side of the shop, which reads, queues and answers requests. It runs on the thread of
//! [`bywash_site::Listener`].

mod exchange;
mod page;
mod respond;
