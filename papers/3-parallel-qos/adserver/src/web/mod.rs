//! The HTTP side: parses requests, queues them, and writes their answers. It runs on the thread of
//! [`bywash_site::Listener`].

mod exchange;
mod respond;
