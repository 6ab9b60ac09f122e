//! The HTTP side: it reads requests, queues them, and writes their responses. It runs on the thread
//! of [`bywash_site::Listener`].

mod exchange;
mod page;
mod respond;
