//! Tests of the engine from outside: events go in, actions come out, and nothing else is looked at.
//!
//! There are examples of one screen each, references that were written independently of the engine,
//! and a model that any policy of the catalogue must agree with. Time is a number; nothing sleeps.

mod cases;
mod catalogue_laws;
mod dice;
mod golden;
mod guards;
mod limits;
mod paper_1;
mod patterns;
mod reconfigure;
mod repeatable;
mod request_table;
mod restore;
mod runners;
mod session_first;
mod sessions;
mod setup;
mod shares;
mod site;
mod spellings;
mod stop;
mod throttle;
mod value_index;
mod waiting;
