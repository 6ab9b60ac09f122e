//! The data plane: clients in, upstream out, the engine between.
//!
//! **A request is one future**, in `request/`: examine → wait for a slot → forward → stream
//! back. It lives inside the future of its client's connection (`client/`), and everything it
//! holds gives itself back when it is dropped: the slot and the place in the queue (`Ticket`),
//! the upstream connection (`Link`), the buffered body, the line in the access log (`Record`).
//! So whatever ends a request early needs to do one thing only: drop the future. A client that
//! leaves ends the future of its *connection*, in whatever phase the request is, while connecting
//! and while an upload is blocked included.
//!
//! Rooms:
//! - [`start`] in `gateway.rs` is the composition root; `worker.rs` is one thread of it.
//! - `driver.rs` is the engine behind one short lock, and the tickets that requests hold.
//! - `client/` accepts, watches for departures, and bounds how long a head may take.
//! - `request/` is the life of a request, one file per phase.
//! - `upstream/` connects, keeps idle connections, and carries one exchange at a time.
//! - `record.rs` is what is known of a request at its end; `metrics.rs` and `access_log.rs` are
//!   where it goes.
//! - `admin/` answers `/livez`, `/readyz`, `/metrics` and `/v1/status` on a listener of its own,
//!   on a thread of its own.
//!
//! Each worker is one thread with a current-thread runtime: nothing of a request crosses threads
//! but the engine's lock and, when another thread's request ends, a wake-up.
#![forbid(unsafe_code)]

mod access_log;
mod admin;
mod client;
mod driver;
mod gateway;
mod metrics;
mod record;
mod request;
mod shared;
mod upstream;
mod worker;

pub use gateway::{Gateway, GatewayError, start};
