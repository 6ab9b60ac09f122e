//! Readings of the machine.
//!
//! [`Cpu`] says how much of the CPU time of this host was in use between two readings. In a
//! container with a quota that is the host's time and not the quota's; overload is better told by
//! the age of the queue's head there. [`Pressure`] says for how long somebody waited for the CPU
//! meanwhile; in a container, in the container.
#![forbid(unsafe_code)]

mod cpu;
mod pressure;

pub use cpu::Cpu;
pub use pressure::Pressure;
