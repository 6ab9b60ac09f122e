//! Reads a TOML file into a checked [`Config`], or into the list of all its problems.
//!
//! An operator who corrects a file in the middle of a flash crowd must not learn of only one
//! mistake per run. So reading does not stop at the first mistake. The text is parsed with
//! recovery, and every table is read to its end. A value that cannot be used is reported, its
//! default replaces it, and the checks between values run nevertheless. Each [`Problem`] has a
//! code, a position and, where one can be guessed, the correction.
//!
//! # Modules
//!
//! - `keys` is the single table of keys. Reading, suggestions, [`schema()`], [`example()`] and
//!   [`reference()`] are derived from it and from the engine's catalogue of policies.
//! - `config`, `identify`, `agents`, `levels`, `listen`, `upstream`, `fleet`, `stopd`, `elephants` and
//!   `network` define the result.
//! - `kind` defines the values that keys take; `read` turns one table of the file into values.
//!   `renamed` has the former names, for the help.
//! - `resolve/` builds a [`Config`] from the values, one file per part, with the checks between
//!   them.
//! - `report` collects problems; `render` formats them.
//!
//! # Why not serde
//!
//! Serde stops at the first error, and a wrong value then hides an unknown key above it. The tree
//! of `toml::de::DeTable` keeps the position of everything. Decision 0045 compares this with a
//! library that collects errors.
#![forbid(unsafe_code)]

mod agents;
mod code;
mod config;
mod document;
mod elephants;
#[cfg(test)]
mod every_key;
mod example;
mod file;
mod fleet;
mod identify;
mod json;
mod key;
mod keys;
mod kind;
mod levels;
mod listen;
mod mode;
mod network;
mod problem;
mod read;
mod reference;
mod renamed;
mod render;
mod report;
mod resolve;
mod schema;
mod size;
mod socket;
mod source;
mod spelling;
mod stopd;
mod success;
mod token;
mod upstream;
mod value;
mod words;

pub use agents::Agent;
pub use config::{
    AccessLog, Answers, ClassConfig, ClientLimits, Config, Details, Queue, State, Stop,
};
pub use elephants::{Act, Elephants, ReadFrom, Resource, Throttle};
pub use example::example;
pub use fleet::{Credentials, Fleet};
pub use identify::{Identify, PrincipalKind, RetryHeader, Session, Signal, Token};
pub use levels::{Level, Levels};
pub use listen::{AdminAddress, Certificate, ForwardingField, HalfClose, Listen, Tls};
pub use mode::Mode;
pub use network::{Network, NoNetwork};
pub use problem::{Elsewhere, Problem, Problems, Severity};
pub use reference::reference;
pub use schema::schema;
pub use stopd::{
    Database, DatabaseAddress, DatabaseKind, DatabaseServer, DatabaseTls, Stopd, StopdNetwork,
    StopdTls,
};
pub use success::{JsonField, Success, Wanted};
pub use upstream::{
    Collector, Departures, Endpoint, Health, Scheme, Server, Timeouts, Upstream, UpstreamTls,
};
