//! The HTTP side: it parses requests, queues them, and writes their responses. It runs on the
//! thread of [`bywash_site::Listener`].

mod exchange;
mod respond;
