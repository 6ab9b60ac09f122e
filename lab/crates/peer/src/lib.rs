//! Proxies as programs: finding and checking them, starting them on loopback, and ending them.
//!
//! Measurements and the laboratory compare bywash with other proxies. Both need a program that has
//! a folder and a port of its own, that listens before any measurement begins, and that reports the
//! reason if it does not. And it must be gone whatever happens to us: an error, a panic, an
//! interrupt, a kill.
//!
//! # Modules
//!
//! - [`PeerKind`] has the properties of each program; [`Running`] is a running program, by its
//!   process ID.
//! - [`child_guard`] ensures that no program outlives this process.
//! - [`scratch`] has folders that programs may write to; [`Namespace`] is a network of their own.
//! - [`processes`] reads `/proc`; [`sys`] has the system calls, and all unsafe code of this crate.

pub mod child_guard;
mod kind;
mod namespace;
mod port;
pub mod processes;
mod running;
pub mod scratch;
pub mod sys;

pub use kind::PeerKind;
pub use namespace::Namespace;
pub use port::free_port;
pub use running::Running;
pub use scratch::Scratch;
