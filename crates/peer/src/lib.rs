//! Proxies as programs: how each is found and checked, started on loopback, and ended.
//!
//! Measurements and the laboratory compare bywash with what others run. Both need a program that
//! has a folder and a port of its own, is known to listen before anybody measures, says why if it
//! does not, and is gone whatever happens to us: an error, a panic, an interrupt, a kill.
//!
//! Rooms: [`Kind`] is what is known of each program; [`Running`] is one that runs, by its process
//! number; [`custody`] sees to it that none outlives us; [`scratch`] is where they may write;
//! [`Namespace`] is a network of their own; [`processes`] reads `/proc`; [`sys`] is the system calls, and all the unsafe code there is here.

pub mod custody;
mod kind;
mod namespace;
mod port;
pub mod processes;
mod running;
pub mod scratch;
pub mod sys;

pub use kind::Kind;
pub use namespace::Namespace;
pub use port::free_port;
pub use running::Running;
pub use scratch::Scratch;
