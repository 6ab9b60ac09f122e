//! Tracks which request uses which database connection, and which requests are stopped.
//!
//! When a client has disconnected, its query should be cancelled, but no other client's query. This
//! is difficult: a database only knows connections, an application lends the same connection to one
//! request after another, and a cancellation that arrives slightly late hits the next request.
//! Therefore an application reports to the stop daemon which request uses which connection, over a
//! socket of the same machine, in lines of text:
//!
//! ```text
//! 7 LEASE 5f1c9a7e00000d42 shop 4711    connection 4711 to database `shop` works for this request
//! 7 OK
//! 8 RELEASE 5f1c9a7e00000d42 shop 4711  the connection no longer works for it
//! 8 OK                                  no cancellation of it is under way: it may be lent again
//! ```
//!
//! A component that learns that a client has disconnected sends:
//!
//! ```text
//! 1 STOP 5f1c9a7e00000d42 client_left
//! 1 OK cancelled=1 spared=0
//! ```
//!
//! A reason is `client_left`, `ran_too_long` or `deadline`. `not-after=MS` after a LEASE or a STOP
//! (milliseconds since 1970) is the time at which it expires. `traceparent=…` after a STOP is the
//! span under which the request was forwarded.
//!
//! **The rule.** A connection is only cancelled while it is leased to the request that is stopped.
//! A release is answered only when no cancellation of the connection is under way. An application
//! that gets no answer closes the connection and does not lend it again. Therefore a cancellation
//! never hits another request, no matter which component is slow, late or dead.
//!
//! A request's name is passed on with its calls to other services, so a STOP stops the work of all
//! services. A service that only gives up its own part of the request sends
//! `1 STOP 5f1c9a7e00000d42 deadline scope=own`, which stops only the connections that it has
//! leased itself.
//!
//! A request may be stopped before it has leased anything. A later `LEASE` is then answered with
//! `STOPPED`, and the query must not begin. (Paper 4 marks a waiting thread as cancelled and checks
//! the mark when the thread gets the lock [paper 4.6].)
//!
//! The database `self` is private to each holder, and the holder chooses the numbers of its
//! connections. To stop such a lease, the daemon sends `0 STOPPED …` to the holder, which stops the
//! work itself. This is meant for databases inside the process (SQLite) and for any other work that
//! can be stopped.
//!
//! The crate has no I/O and no clock. It parses and writes lines ([`Message`], [`Answer`]). The
//! [`Table`] receives events with their times and returns the consequences. [`statement`] reads the
//! text of a running statement: which request it belongs to, by a comment in front, and whether it
//! only reads.
#![forbid(unsafe_code)]

mod answer;
mod message;
mod name;
pub mod statement;
mod table;

pub use answer::{Answer, Refusal};
pub use message::{Command, LONGEST, Malformed, Message, Reason, Scope};
pub use name::{DatabaseName, NotAName, OWN, RequestId};
pub use table::{Backend, Bounds, Holder, Leased, Part, Released, Stopped, Table};
