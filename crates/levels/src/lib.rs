//! A thread pool that gives a request as many threads as its service level deserves.
//!
//! A site that computes its answers can treat customers differently without the operating system's help: who deserves
//! more gets more threads [seed 3.1]. Threads alone do it only while the machine has some to spare. Here they are slots
//! of a fixed pool, for which waiting requests and running ones compete, and what a level is promised is kept when
//! the pool is full as well: [`Goal`].
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
//! // In the thread that answers a request: waits for its turn.
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
//! What a level is promised the pool keeps by deciding who gets the next slot, and says when it cannot
//! ([`Stats::goal`]).
//!
//! Which level a request has the gateway says, signed: `Gateway`.
//!
//! Rooms: [`Pool`] is made by a [`Builder`]; a [`Waiting`] is a place in line, a [`Request`] a turn, a [`Scope`] its
//! tasks; `worker` are the pool's threads, `desk` what they share; who gets a slot is decided by
//! [`bywash_engine::levels`], the code that the laboratory runs in virtual time. `task` has the only unsafe lines, with
//! their proof. [`Fate`] is for bindings of other languages.
//!
//! Tasks are for work on processors: one that sleeps or waits for a socket keeps a slot that somebody could use. They
//! should be short (some milliseconds): a slot changes hands between tasks, never within one.

mod builder;
mod desk;
mod error;
mod fate;
#[cfg(feature = "gateway")]
mod gateway;
mod pool;
#[cfg(feature = "rayon")]
mod rayon;
mod request;
mod scope;
mod seat;
mod stats;
mod task;
mod waiting;
mod worker;

pub use builder::{Builder, Goal, suggested_threads};
pub use bywash_engine::levels::{Level, Verdict};
pub use error::{BuildError, Refused};
pub use fate::Fate;
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
