//! The data plane: accepts clients, asks the engine for decisions, forwards requests to the
//! upstream.
//!
//! **A request is one future**, in `request/`: examine → wait for a slot → forward → stream back.
//! It lives inside the future of its client's connection (`client/`). Everything that it holds is
//! released when it is dropped: the slot and the place in the queue (`Ticket`), the upstream
//! connection (`Exchange`), the server's share of the load (`Load`), the buffered body, the line in
//! the journal (`Record`). So code that ends a request early only has to drop the future. When a
//! client leaves, the future of its *connection* ends, in whatever phase the request is. This
//! includes the time while the gateway connects to a server and while an upload is blocked.
//!
//! **A message is parsed once, strictly** (crate `bywash_message`), and is then serialized again
//! from the parsed form. The gateway implements HTTP/1 itself on both sides, on top of `wire.rs`;
//! HTTP/2 is implemented by the `h2` library.
//!
//! # Modules
//!
//! Lowest first. A module is meant to use only those above it in this list.
//! - `sync.rs`: the locks, which `make shuttle` replaces to explore thread schedules; `talk.rs`:
//!   lines on standard error.
//! - `memory.rs`: the budget for all memory that clients can make the gateway hold.
//! - `stream.rs`, `wire.rs`, `body.rs`: a connection's bytes; buffers; pieces of bodies.
//! - `panics.rs` counts panics. `metrics.rs`, `access_log.rs`, `journal.rs`, `traces.rs` and
//!   `orphans.rs` record and report what happened to requests.
//! - `driver.rs`: the engine behind one short lock, and the tickets that requests hold.
//! - `tokens.rs`: checks session tokens, and builds the cookie with the next one.
//! - `aside.rs`, `audit.rs`, `overrides.rs`, `elephants/`: decisions of operators, in force.
//!   `state_writer.rs` writes them to disk on its own thread.
//! - `settings.rs`, `shared.rs`: the settings in force; the state that all threads share.
//! - `upstream/` chooses a server, connects, keeps idle connections, carries exchanges.
//! - `request/` is the life of a request, one file per phase. `record.rs` holds the facts about it,
//!   `reply.rs` the reply to the client.
//! - `client/` accepts connections, implements the client's protocol, and watches for disconnects
//!   and slow clients.
//! - `admin/` answers operators, on its own listener and thread.
//! - `fuzz.rs`: the targets of `fuzz/` that need private parts of this crate.
//! - `worker.rs` is one thread of the data plane, `listen.rs` its listeners, and [`start`] in
//!   `gateway.rs` the composition root. `classes.rs` carries class numbers over from one
//!   configuration to the next, `learned.rs` the learned state from one process to the next.
//!
//! Each worker is one thread with a current-thread runtime. A request crosses threads only at the
//! engine's lock and, when a request on another thread ends, by a wake-up.
#![forbid(unsafe_code)]
// `eprintln!` panics when standard error is closed; `talk::say` ignores that.
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
