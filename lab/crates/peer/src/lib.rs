//! Proxies as programs: this crate finds and checks them, starts them on loopback, and ends them.
//!
//! Measurements and the laboratory compare bywash with other proxies. Both need a program that has
//! a folder and a port of its own. It must listen before any measurement begins, and report the
//! reason if it does not. It must also end whenever this process ends: by an error, a panic, an
//! interrupt or a kill.
//!
//! # Modules
//!
//! - [`PeerKind`] has the properties of each program; [`Running`] is a running program, by its
//!   process ID.
//! - [`child_guard`] ensures that no program outlives this process.
//! - [`scratch`] creates folders that programs may write to; [`Namespace`] is a network in which
//!   only they are.
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
