//! The data plane: clients in, upstream out, the engine between.
//!
//! **A request is one future**, in `request/`: examine → wait for a slot → forward → stream
//! back. It lives inside the future of its client's connection (`client/`), and everything it
//! holds gives itself back when it is dropped: the slot and the place in the queue (`Ticket`),
//! the upstream connection (`Exchange`), the server's share of the load (`Load`), the buffered
//! body, the line in the journal (`Record`). So whatever ends a request early needs to do one
//! thing only: drop the future. A client that leaves ends the future of its *connection*, in
//! whatever phase the request is, while connecting and while an upload is blocked included.
//!
//! **A message is parsed once, strictly** (crate `bywash_message`), and written anew from what was
//! parsed. HTTP/1 is spoken here, on both sides, on top of `wire.rs`; HTTP/2 by the `h2` library.
//!
//! Rooms, lowest first; a room knows those above it in this list and none below:
//! - `sync.rs`: locks, which the schedules of `make shuttle` exchange; `talk.rs`: what is said on standard error.
//! - `memory.rs`: the budget for all that clients can make the gateway hold.
//! - `stream.rs`, `wire.rs`, `body.rs`: a connection's bytes; buffers; pieces of bodies.
//! - `panics.rs` counts panics; `metrics.rs`, `access_log.rs`, `journal.rs`, `traces.rs`, `orphans.rs`: where what is known of a
//!   request goes.
//! - `driver.rs`: the engine behind one short lock, and the tickets that requests hold.
//! - `tokens.rs`: what a session token is worth here, and the cookie that gives the next one.
//! - `aside.rs`, `audit.rs`, `overrides.rs`, `elephants/`: what operators have decided, in force; `state_writer.rs` writes
//!   it down on a thread of its own.
//! - `settings.rs`, `shared.rs`: what is in force; what all threads share.
//! - `upstream/` chooses a server, connects, keeps idle connections, carries exchanges.
//! - `request/` is the life of a request, one file per phase; `record.rs` is what is known of it,
//!   `reply.rs` what goes back.
//! - `client/` accepts, speaks the client's protocol, watches for departures and dawdlers.
//! - `admin/` answers operators on a listener and a thread of its own.
//! - `fuzz.rs`: what `fuzz/` tries of what is not public.
//! - `worker.rs` is one thread of the data plane, `listen.rs` its doors, and [`start`] in
//!   `gateway.rs` the composition root; `classes.rs` and `learned.rs` are what goes on from one
//!   configuration, and from one process, to the next.
//!
//! Each worker is one thread with a current-thread runtime: nothing of a request crosses threads
//! but the engine's lock and, when another thread's request ends, a wake-up.
#![forbid(unsafe_code)]
// `talk::say` ends no process that nobody listens to.
#![deny(clippy::print_stderr)]

mod access_log;
mod admin;
mod aside;
mod audit;
mod body;
mod classes;
mod client;
mod connections;
mod driver;
mod elephants;
mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod gateway;
mod history;
mod journal;
mod learned;
mod levels;
mod listen;
mod local_fault;
mod memory;
mod metrics;
mod names;
mod orphans;
mod overrides;
mod panics;
mod record;
mod reply;
mod request;
mod settings;
mod shared;
mod state_writer;
mod stream;
mod sync;
pub mod talk;
mod tokens;
mod traces;
mod undecided;
mod upstream;
mod wall;
mod wire;
mod worker;

pub use classes::TooManyClasses;
pub use files::Files;
pub use gateway::{Gateway, GatewayError, Inheritance, Pulse, Senses, prepare, start};
pub use memory::{Budget, budget};
pub use metrics::METRICS;
pub use traces::EXPORTS_TRACES;
