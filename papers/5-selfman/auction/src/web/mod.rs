//! The HTTP side: requests are read, queued, and answered. The thread is [`bywash_site::Listener`]'s.

mod exchange;
mod form;
mod html;
mod respond;
