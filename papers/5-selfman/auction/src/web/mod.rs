//! The HTTP side, which reads, queues and answers requests. It runs on the thread of
//! [`bywash_site::Listener`].

mod exchange;
mod form;
mod html;
mod respond;
