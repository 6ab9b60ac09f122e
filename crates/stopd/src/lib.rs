//! The stop daemon: cancels database statements of clients that have disconnected.
//!
//! ```text
//!   application ── LEASE, RELEASE ──┐
//!                                   ├──► conversation ──► lease_broker ──► canceller ──► database
//!   gateway, web server ── STOP ────┘                           ▲              │
//!                                                               └── begin, end ┘
//! ```
//!
//! The clients are on this machine, or on other machines. There, a daemon that is a relay passes
//! their messages on:
//!
//! ```text
//!   application, gateway ──► conversation ──► relay ══ TLS ══► listener ──► conversation ──► lease_broker
//! ```
//!
//! Everything runs on one thread: messages are short, the databases do the work, and decisions
//! about leases need no lock.
//!
//! # Modules
//!
//! - `daemon`: starts the daemon from a configuration, and ends it
//! - `listener`: accepts client connections, and finds out the identity and rights of each client
//! - `service`: serves a client by the lease broker, or by the relay
//! - `relay`: passes messages on to the daemon of another machine
//! - `network`: TLS between daemons
//! - `conversation`: handles one client connection: its lines and the responses
//! - `peer`: the identity and the rights of a client
//! - `lease_broker`: handles messages and holds the leases (`bywash_lease::Table`)
//! - `responder`: sends the responses to a client
//! - `job`: a stopped request, and the report to the sender of the stop
//! - `canceller`: finds and cancels the statements of stopped requests in its database, within a
//!   budget
//! - `database`: PostgreSQL and MySQL (with MariaDB): running statements and their cancellation
//! - `spared`: the reasons for which a statement is not cancelled
//! - `table`: the list of metrics
//! - `numbers`: the values of the metrics
//! - `operators`: the HTTP interface for operators
//! - `cancel_log`: a log line for each cancellation
//!
//! **The decision to cancel** is made twice. `lease_broker` decides whether a connection works for
//! the request at this moment, and blocks the connection until the database has responded. The
//! daemon then lets the database cancel the statement that was found (identified in PostgreSQL by
//! its start, in MariaDB by its number). So a late cancellation hits no other statement, except in
//! a short race. The lease covers the race, and a lease whose cancellation was never answered is
//! not released. MySQL only knows connections, so there the lease is the only protection.
//!
//! **The cost for the databases** is bounded. One query searches for all requests that are due, and
//! there are at most `statements_per_second` in total. Further stops wait, and are dropped when it
//! is too late.
//!
//! Source: the stop daemon of paper 4 [paper 4.6]. The rules for each database are based on
//! measurements.
#![forbid(unsafe_code)]

mod cancel_log;
mod canceller;
mod connection_limits;
mod conversation;
mod daemon;
mod database;
mod job;
mod lease_broker;
mod listener;
mod network;
mod numbers;
mod operators;
mod peer;
mod relay;
mod responder;
mod service;
mod spared;
mod table;
mod token_bucket;

pub use daemon::{Daemon, StopdError, start};
pub use table::METRICS;
