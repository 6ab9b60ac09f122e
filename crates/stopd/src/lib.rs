//! The stop daemon: cancels in databases what works for clients who have gone.
//!
//! ```text
//!   application ── LEASE, RELEASE ──┐
//!                                   ├──► conversation ──► desk ──► canceller (one a database) ──► database
//!   gateway, web server ── STOP ────┘                       ▲             │
//!                                                           └── begin, end┘
//! ```
//!
//! Everything runs on one thread: messages are short, the databases do the work, and what is decided about a lease
//! needs no lock. A room each:
//!
//! - `daemon`: from a configuration to a running daemon, and its end;
//! - `conversation`: one client: who it is by the kernel's word, its lines, their answers;
//! - `desk`: what a message leads to; holds the leases (`bywash_lease::Table`);
//! - `canceller`: one database: what is wanted there, looked for together, within a budget;
//! - `database`: PostgreSQL and MySQL (with MariaDB): what runs, and its cancellation;
//! - `table`: which metrics there are; `numbers`: what is counted; `operators`: where that is read; `journal`: a line for each cancellation.
//!
//! **What may be cancelled** is decided twice. The desk says whether a connection works for the request at this
//! moment, and holds it until the database has answered. The database is asked for the very statement that was seen
//! (PostgreSQL by when it began, MariaDB by its number), so what comes late hits nobody, but for a
//! moment: for that there is the lease, and one whose cancellation was never answered is not given back. MySQL knows
//! connections only: there the lease alone protects.
//!
//! **What it costs the databases** is bounded: everything that is wanted at a moment is looked for in one query, and
//! there are no more than `statements_per_second` in all. What does not fit waits, and is dropped when it comes too
//! late.
//!
//! Source: seed 4's stop daemon [seed 4.6]; the rules by database were measured first.
#![forbid(unsafe_code)]

mod canceller;
mod conversation;
mod daemon;
mod database;
mod desk;
mod journal;
mod numbers;
mod operators;
mod pace;
mod seats;
mod table;

pub use daemon::{Daemon, StopdError, start};
pub use table::METRICS;
