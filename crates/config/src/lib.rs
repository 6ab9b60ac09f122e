//! A TOML file becomes a checked [`Config`], or the list of everything that is wrong with it.
//!
//! An operator who mends a file in the middle of a flash crowd does not want to learn of one
//! mistake per run. So nothing here stops at the first: the text is parsed with recovery, every
//! table is read to its end, a value that cannot be used is reported and its default stands in
//! for it, and the checks between values run all the same. Each [`Problem`] has a code, a place
//! and, wherever one can be guessed, the correction.
//!
//! Where to look:
//! - `keys` is the one table of keys; reading, suggestions, [`schema()`], [`example()`] and
//!   [`reference()`] follow from it and from the engine's catalogue of policies.
//! - `config`, `identify`, `levels`, `listen`, `upstream`, `sentry`, `elephants` and `network` are what comes out.
//! - `kind` is what a key takes, `read` turns one table of the file into values.
//! - `resolve/` makes a [`Config`] of the values, one file per part, with the checks between them.
//! - `report` collects, `render` draws.
//!
//! Why not serde: it stops at the first error, and a wrong value then hides an unknown key above
//! it. The tree of `toml::de::DeTable` keeps the place of everything.
#![forbid(unsafe_code)]

mod code;
mod config;
mod document;
mod elephants;
#[cfg(test)]
mod every_key;
mod example;
mod file;
mod guess;
mod identify;
mod json;
mod key;
mod keys;
mod kind;
mod levels;
mod listen;
mod network;
mod problem;
mod read;
mod reference;
mod render;
mod report;
mod resolve;
mod schema;
mod sentry;
mod size;
mod socket;
mod source;
mod success;
mod upstream;
mod value;
mod words;

pub use config::{
    AccessLog, Answers, Charge, ClassConfig, Config, Details, Limits, Mode, Queue, State, Stop,
};
pub use elephants::{Act, Elephants, ReadFrom, Resource, Throttle};
pub use example::example;
pub use identify::{Identify, RetryHeader, Session, Signal, Token};
pub use levels::{Level, Levels};
pub use listen::{AdminAddress, Certificate, ForwardingField, HalfClose, Listen, Tls};
pub use network::{Network, NoNetwork};
pub use problem::{Elsewhere, Problem, Problems, Severity};
pub use reference::reference;
pub use schema::schema;
pub use sentry::{Database, DatabaseKind, DatabasePlace, DatabaseServer, Sentry};
pub use success::{JsonField, Success, Wanted};
pub use upstream::{
    Collector, Departures, Endpoint, Health, Scheme, Server, Timeouts, Upstream, UpstreamTls,
};
