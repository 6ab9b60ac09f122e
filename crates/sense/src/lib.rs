//! Readings of the machine, and of what a server wrote down about its requests: what can be seen of an application from
//! outside [seed 5.1].
//!
//! [`Cpu`] says how much of the CPU time of this host was in use between two readings. In a
//! container with a quota that is the host's time and not the quota's; overload is better told by
//! the age of the queue's head there. [`Pressure`] says for how long somebody waited for the CPU
//! meanwhile; in a container, in the container.
//!
//! [`Process`] says which resources this process uses.
//!
//! [`access_log`] turns a line of an access log into a request: when, what, by whom, how it ended.
//!
//! [`series`] says how much of each resource was used between two moments: of a host, of processes and
//! control groups, of what exporters tell.
#![forbid(unsafe_code)]

pub mod access_log;
mod cpu;
mod grant;
mod pressure;
mod process;
pub mod series;

pub use cpu::Cpu;
pub use grant::{Grant, SocketMemory, grant, machine_memory, tighter};
pub use pressure::Pressure;
pub use process::Process;
