//! Tests of both sides of TLS against each other, and against rustls where the other side needs a
//! setup that ours does not offer. They perform real handshakes, through a pipe in memory or a
//! socket.
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
