//! A simulated site with known elephants, to compare findings with the true costs.
//!
//! A fixed number of visitors request pages of the site, with think times between them [paper 5.4].
//! A page is processed by a web server, which always has free capacity, and then by a database. The
//! database consists of several processors, which serve requests first come, first served, with
//! exponential service times. Two pages, the elephants, use nearly all of the database's time.
//! Every other page takes a fifth of a millisecond. After a search, the visitor's browser loads a
//! picture, which costs nothing and arrives in the same second.
//!
//! The observations are the start and end of requests and, each second, the utilisation of the
//! database. The utilisation includes noise, a randomly varying background load, and a checkpoint
//! every five minutes. The search for elephants ([`bywash_discover`]) receives nothing else.

mod judge;
mod simulation;
mod site;

pub use judge::{Score, Verdict, first_named, judge};
pub use simulation::{Load, Observation, SimulationSettings, observe};
pub use site::Site;
