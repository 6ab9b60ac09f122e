//! Which request uses which connection to a database, and which of them are stopped.
//!
//! When a client has left, its query should end, and nobody else's. A database knows connections, an application
//! lends the same connection to one request after the other, and a cancellation that comes a moment late hits the
//! next one. So an application tells the stop daemon what it does, over a socket of this machine, in lines:
//!
//! ```text
//! 7 LEASE 5f1c9a7e00000d42 shop 4711        from now on connection 4711 to database `shop` works for this request
//! 7 OK
//! 8 RELEASE 5f1c9a7e00000d42 shop 4711      it does not any more
//! 8 OK                                      … and nothing that was aimed at it is under way: lend it to whom you like
//! ```
//!
//! and whoever learns that a client has gone says so:
//!
//! ```text
//! 1 STOP 5f1c9a7e00000d42 client_left
//! 1 OK cancelled=1 spared=0
//! ```
//!
//! A reason is `client_left`, `ran_too_long` or `deadline`. `not-after=MS` behind a LEASE or a STOP (milliseconds since
//! 1970) says when it ends by itself, and `traceparent=…` behind a STOP under which span the request was sent on.
//!
//! **The rule.** A connection is only cancelled while it is leased to the request that is stopped, and a release is
//! answered only when no cancellation of it is under way. Whoever gets no answer closes the connection and does not
//! lend it again. So no innocent is hit, whatever is slow, late or dead.
//!
//! A request's name goes on with its calls to other services, so a STOP stops all of them. Whoever only speaks for what
//! he leased himself, as the request is over for him, says `1 STOP 5f1c9a7e00000d42 deadline scope=own`.
//!
//! A request may be stopped before it has leased anything: a `LEASE` is then answered `STOPPED`, and the query does
//! not begin. (Seed 4 marks a waiting thread as cancelled and looks at the mark when it gets the lock [seed 4.6].)
//!
//! The database `self` belongs to nobody but the holder of the lease, and its numbers are his own: he is told `0 STOPPED …` on its own
//! connection and stops by himself whatever it is. That is for databases in the process (SQLite), and for anything
//! else that can be stopped.
//!
//! No input, no output, no clock: lines are parsed and written ([`Message`], [`Answer`]), the [`Table`] is told what
//! happened and when, and says what follows. [`statement`] reads what a database says it runs: whose it is, by a
//! comment in front, and whether it only reads.
#![forbid(unsafe_code)]

mod answer;
mod message;
mod name;
pub mod statement;
mod table;

pub use answer::{Answer, Fault};
pub use message::{LONGEST, Malformed, Message, Order, Reason, Scope};
pub use name::{DatabaseName, NotAName, OWN, RequestId};
pub use table::{Backend, Bounds, Holder, Leased, Part, Released, Stopped, Table};
