//! A thread pool that gives a request as many threads as its service level deserves.
//!
//! On a site whose responses take computation, requests of a higher level can get more threads. So
//! some customers get faster responses without the help of the operating system [paper 3.1]. More
//! threads alone have an effect only while the machine has idle processors. In this pool a thread
//! needs one of a fixed number of slots, and waiting requests and running ones compete for slots.
//! The promise to a level therefore also holds when the pool is full: see [`Goal`].
//!
//! ```
//! use bywash_levels::{Goal, Level, Pool, suggested_threads};
//!
//! let pool = Pool::builder(suggested_threads())
//!     .level("high", Level { max_threads: 4, ..Level::PLAIN })
//!     .level("low", Level::PLAIN)
//!     .goal(Goal::Ratio { fast: "high", slow: "low", target: 0.5 })
//!     .build()?;
//!
//! // In the thread that handles a request: waits for its turn.
//! let mut request = pool.request("high")?;
//! let concepts = ["car", "road", "drive"];
//! let found = request.map(&concepts, |concept| concept.len());
//! assert_eq!(found, [3, 4, 5]);
//! drop(request); // its slot goes to the next
//!
//! assert_eq!(pool.stats().levels[0].answered, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The pool keeps its promise by deciding which request gets the next slot. It reports when it
//! cannot keep it ([`Stats::goal`]).
//!
//! The gateway determines the level of a request and signs it: see `Gateway`.
//!
//! # Modules
//!
//! A [`Builder`] builds a [`Pool`]. A [`Waiting`] is a request in the queue, a [`Request`] is one
//! with a slot, and a [`Scope`] holds its tasks. `scheduler` contains the threads of the pool and
//! the state that they share. [`bywash_engine::levels`] decides which request gets a slot; the
//! simulator runs the same code in virtual time. `task` and `scope` contain the only unsafe lines,
//! with their proofs. [`JobState`] is for bindings of other languages.
//!
//! Tasks are for computation: a task that sleeps or waits for a socket keeps a slot that another
//! could use. They should be short (some milliseconds), because a slot changes hands between tasks,
//! never within one.

mod builder;
mod error;
#[cfg(feature = "gateway")]
mod gateway;
mod job_state;
mod parker;
mod pool;
#[cfg(feature = "rayon")]
mod rayon;
mod request;
mod scheduler;
mod scope;
mod stats;
mod task;
mod waiting;

pub use builder::{Builder, Goal, suggested_threads};
pub use bywash_engine::levels::{Level, Verdict};
pub use error::{BuildError, Refused};
pub use job_state::JobState;
pub use pool::Pool;
pub use request::Request;
pub use scope::Scope;
pub use stats::{GoalStats, LevelStats, Stats};
pub use waiting::Waiting;
#[cfg(feature = "gateway")]
pub use {
    bywash_files::Unreadable,
    bywash_token::{LevelRefusal, level::LONGEST_NAME},
    gateway::{Gateway, GatewayError},
};
