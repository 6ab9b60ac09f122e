//! The data plane: accepts clients, asks the engine for decisions, and forwards requests to the
//! servers of the application (the upstream).
//!
//! **A request is one future**, in `request/`: examine → wait for a slot → forward → stream back.
//! It lives inside the future of its client's connection (`client/`). Dropping it releases
//! everything that it holds:
//! - the slot and the place in the queue (`Ticket`),
//! - the upstream connection (`Exchange`),
//! - its count among the server's running requests (`Load`),
//! - the buffered body,
//! - the entry in the request log (`Record`), which is written then.
//!
//! Therefore code that ends a request early only has to drop the future. When a client leaves, the
//! future of its *connection* ends, whatever phase the request is in. That holds also while the
//! gateway connects to a server, and while an upload is blocked.
//!
//! **Every message is parsed once, strictly** (crate `bywash_message`), and serialized again from
//! the parsed form. The gateway implements HTTP/1 itself on both sides, on top of `io/wire.rs`. The
//! library `h2` implements HTTP/2.
//!
//! # Modules
//!
//! The modules are listed from the lowest to the highest. A module uses only those above it in this
//! list; `scripts/check-modules` checks that.
//! - `process/`: facilities of the whole process: locks (which `make shuttle` replaces to explore
//!   thread schedules), clocks, standard error, and the budget for all memory that clients can make
//!   the gateway hold.
//! - `error.rs`: the errors of a start and of a reload.
//! - `io/`: the bytes of a connection, and bodies as they pass through.
//! - `driver/`: the engine behind one lock, and the tickets that requests hold.
//! - `state/`: decisions of operators in memory, on disk (written by a thread of its own) and in
//!   the audit log.
//! - `elephants/`: the rules that throttle requests, and the findings behind these rules.
//! - `connections/`: how many client connections may be open, and which one is evicted.
//! - `telemetry/`: metrics, the access log, the last requests, the history, traces, and messages to
//!   the stop daemon.
//! - `identity/`: cookies, session tokens, service levels, populations of clients.
//! - `static_files.rs`: recognises the files of servers for which a request takes no slot.
//! - `upstream/`: chooses a server, connects, keeps idle connections, carries exchanges.
//! - `settings.rs`: the settings in force. `shared.rs`: the state that all threads share.
//!   `context.rs`: the state that the requests of one worker share.
//! - `decisions/`: puts the decisions of operators and of the watch for elephants in force.
//! - `request/`: the life of a request, one file per phase. `record.rs` holds the facts about the
//!   request, `reply.rs` the reply to the client.
//! - `client/`: accepts connections, implements HTTP with the client, and watches for disconnects
//!   and slow clients.
//! - `admin/`: answers operators, on its own listener and thread.
//! - `gateway/`: the composition root [`start`], the threads, the listeners, the probes of servers,
//!   and the state that a process hands to the next.
//! - `fuzz.rs`: the targets of `fuzz/` that need private parts of this crate.
//!
//! Each worker is one thread with a current-thread runtime. Workers meet only at the engine's lock.
//! When a request on one thread ends, the engine may wake up a waiting request of another thread.
#![forbid(unsafe_code)]
// `eprintln!` panics when standard error is closed; `stderr::say` ignores write errors.
#![deny(clippy::print_stderr)]

mod admin;
mod client;
mod connections;
mod context;
mod decisions;
mod driver;
mod elephants;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod gateway;
mod identity;
mod io;
mod process;
mod request;
mod settings;
mod shared;
mod state;
mod static_files;
mod telemetry;
mod upstream;

pub use error::{GatewayError, TooManyClasses};
pub use gateway::{Files, Gateway, Inheritance, Liveness, Senses, prepare, start};
pub use process::memory::{Budget, budget};
pub use telemetry::metrics::METRICS;
pub use telemetry::traces::EXPORTS_TRACES;
