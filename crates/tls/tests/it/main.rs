//! Both sides of TLS against each other, and against rustls as the other side where a peer must
//! be set up in a way that ours cannot: real handshakes, through a pipe in memory or a socket.
#![allow(missing_docs, reason = "a test's name is what it says")]
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]

mod authority;
mod meeting;

mod alpn;
mod files;
mod handshake;
mod mutual;
mod names;
mod reload;
mod sessions;
mod upstream;
