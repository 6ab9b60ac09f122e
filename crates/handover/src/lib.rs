//! Lets the gateway's service outlive a process: listening sockets from the supervisor or from the
//! previous process, notifications to the supervisor, and the state that a process saves on disk.
//!
//! A listening socket belongs to the kernel, not to the process that created it. As long as one
//! process has the socket open, clients can connect. They wait in its backlog until a process
//! accepts them. Therefore no function here closes a socket and binds it again. A socket is created
//! once, by the supervisor ([`from_supervisor`]) or by the first process. It is then handed over
//! from process to process ([`hand_over`], [`from_predecessor`]). Two processes may accept from it
//! at the same time, and at no moment is a connection refused.
//!
//! All functions here may block or read the disk, so they belong on a thread that serves no
//! requests.

mod activation;
mod descriptors;
mod error;
mod head;
mod predecessor;
mod socket;
mod state_file;
mod successor;
mod supervisor;
mod watched;

pub use activation::from_supervisor;
pub use error::{HandoverError, MOST_STATE};
pub use predecessor::{Successor, hand_over};
pub use socket::{Listener, Name, Sockets};
pub use state_file::{StateError, load, save};
pub use successor::{Inherited, from_predecessor};
pub use supervisor::Supervisor;
pub use watched::Watched;
