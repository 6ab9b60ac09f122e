//! Tests of the engine from outside: they send events and look at actions and public state only.
//!
//! There are small examples, references that were written independently of the engine, and a model
//! with which any policy of the catalogue must agree. Time is a number, so no test sleeps.

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
