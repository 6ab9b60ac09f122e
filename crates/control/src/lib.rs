//! From what was found to what is done: proposals, an operator's word, rules that end.
//!
//! Discovery says which requests cause the load. That is evidence, and no reason to hold anybody back by itself: the
//! operator knows whether the page may be slow [seed 5.5]. So what was found becomes a *proposal*, with its evidence and
//! what a rule would do; whoever decides says who they are, why, and for how long. From then on it is a *rule*, until
//! it ends, is undone, or the file says otherwise. A minute's *trial* is a rule too, and is measured.
//!
//! Nothing here reads a clock or a file: the time comes in as an argument, and [`Book::text`] is what is to be kept.
//!
//! # What is believed
//!
//! Strangers send the requests that evidence is made of. A page may be made to look heavy by one client who asks for it
//! whenever the site is busy; so each finding says how much of its page's work is one client's
//! ([`Elephant::by_one`]), and nothing is done without an operator where that is much. A rule for transactions is
//! refused, whoever asks. There are no more than [`MOST_RULES`] rules and [`MOST_ENTRIES`] entries.
//!
//! # Rooms
//!
//! `watch` makes evidence of requests and use, with `clients`, `tally`, `held` and `recent`, and tells of it what can be drawn (`spent`); `elephant` is that evidence, `grants` what a rule says, `effect` what it will do; `entry` is an elephant with all that was
//! decided about it; `book` has them all and is the only one to change them; `note` is a line of the audit log; `overrides` is what else operators say for a while.
#![forbid(unsafe_code)]

mod book;
mod clients;
mod effect;
mod elephant;
mod entry;
mod grants;
mod held;
mod note;
mod overrides;
mod recent;
mod spent;
mod tally;
mod text;
mod watch;
mod word;

pub use book::{Act, Book, BookError, InForce, MOST_ENTRIES, MOST_RULES, Refused, Written};
pub use clients::{Client, OneClient};
pub use effect::{Effect, Gauge, Lot, Unpredicted};
pub use elephant::{Elephant, Resource};
pub use entry::{Ended, Entry, Origin, Rule, State, Trial};
pub use grants::{Change, Grants, Limit};
pub use jiff::Timestamp;
pub use note::{Note, Subject, What};
pub use overrides::{
    MOST_OVERRIDES, Mode, NotOverridden, Override, Overrides, OverridesError, Target,
};
pub use recent::{Answers, WINDOW as ANSWERS_WINDOW};
pub use spent::{Lot as Spending, Spent, Window};
pub use text::{escaped, printable_json};
pub use watch::{BYTES, MOST_EXEMPT, Part, SLOTS, Seen, Watch, Watched};
pub use word::{Word, WordError};
