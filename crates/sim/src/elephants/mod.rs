//! A site whose elephants are known: what is found of them is held against that.
//!
//! Visitors walk through pages, each with think time between, a fixed number of them [seed 5.4]. A page is worked on by
//! a web server, which is never short, then by a database: processors that serve in the order of coming, for an
//! exponential time. Two pages, the elephants, use nearly all of its time; all others a fifth of a millisecond. Where
//! a visitor has searched, her browser loads a picture right after: it costs nothing and comes in the same second.
//!
//! Seen from outside are the spans of requests and, each second, how busy the database was, with what else it does: noise,
//! a background that wanders, and every five minutes a checkpoint. [`discover`](bywash_discover) gets no more than that.

mod judge;
mod site;
mod world;

pub use judge::{Score, Verdict, first_named, judge};
pub use site::Site;
pub use world::{Load, Seen, World, observe};
