//! Measurements of the machine, and of the requests that a server has logged: the parts of an
//! application that are observable from outside [paper 5.1].
//!
//! [`Cpu`] measures the fraction of this host's CPU time that was in use between two readings. In a
//! container with a quota, that is the time of the host and not of the quota. The age of the oldest
//! queued request is a better sign of overload there.
//!
//! [`Pressure`] measures the fraction of time between two readings in which tasks waited for the
//! CPU. In a container, that covers the container only.
//!
//! [`Process`] measures the resources that this process uses.
//!
//! [`access_log`] parses a line of an access log into a request: its time, target, client and
//! result.
//!
//! [`series`] measures the use of each resource between two points in time: of a host, of processes
//! and control groups, and from the metrics of exporters.
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
pub use process::{Process, file_limits};
