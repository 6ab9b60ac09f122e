//! The gateway outlives its process: listening sockets that come from the supervisor or from the
//! process before, what the supervisor is told, and what a process leaves behind on disk.
//!
//! A listening socket belongs to the kernel, not to the process that made it. As long as one
//! process has it open, clients connect to it, and wait in its queue until somebody accepts. So
//! nothing here closes one and binds it anew: a socket is made once, by the supervisor
//! ([`from_supervisor`]) or by the first process, and then handed from process to process
//! ([`hand_over`], [`from_predecessor`]). Two processes may accept from it at the same time, and
//! no connection is refused at any moment in between.
//!
//! Everything here blocks or reads the disk, and belongs on a thread that serves no request.

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
pub use error::HandoverError;
pub use head::MOST_STATE;
pub use predecessor::{Successor, hand_over};
pub use socket::{Listener, Name, Sockets};
pub use state_file::{StateError, load, save};
pub use successor::{Inherited, from_predecessor};
pub use supervisor::Supervisor;
pub use watched::Watched;
