//! Finds the class of a request: holds its method and target against a list of patterns.
//!
//! A [`Pattern`] says which requests are meant: `GET /p/**`, `POST /confirm`, `/index.php?route=checkout/*&...`. The most
//! specific pattern wins: paths are compared segment by segment from the left, where a name goes before an ending
//! (`*.html`), that before `*`, and `*` before `**`; of one path the pattern goes first that fixes more values of parameters, then more
//! letters of them, then more names; of one target `HEAD` goes before `GET`, and a method before `*`. Only the very same pattern twice is a tie, and
//! that is an error when the list is made.
//!
//! A request that applications read in more than one way is of the classes of all its readings, and is treated as the
//! strictest of them would be ([`strict`]): an odd spelling may lower a request and never raise it, and it stays held by
//! what holds the plain one. That is so for
//!
//! - paths ([`readings`]),
//! - **parameters that a pattern does not allow**: an application ignores those that it does not know, so the class of the
//!   pattern is one of the request's classes, beside the class of the pattern that takes the request as it is;
//! - **parameters that are there twice**, lists (`a[]`) and more parameters than are read: one application takes the first
//!   value and another takes the last, so all patterns of the path that any of the values fits count, and the one without
//!   parameters as well;
//! - **parameters of several pages**: of two patterns of one path where neither has all parameters of the other, both
//!   count if both fit. Which parameter decides only the application knows;
//! - **fields**: anybody may send any, so a class with [`Condition::fields`] counts beside the class that the request would have
//!   without it.

mod classifier;
mod condition;
mod parameters;
mod pattern;
mod query;
mod reading;
pub mod strict;

use alloc::string::String;
use core::fmt;

use crate::request::ClassId;

pub use classifier::Classifier;
pub use condition::{Condition, Field, HostPattern};
pub use parameters::Parameters;
pub use pattern::{BadPattern, Line, Pattern, is_reading};
pub use reading::{DEEPEST, PathReading, decoded, readings};

/// A request, as far as its class depends on it.
#[derive(Clone, Copy)]
pub struct Asked<'t> {
    /// Its method.
    pub method: &'t str,
    /// Its canonical path and its query.
    pub target: &'t str,
    /// The host that it is for, perhaps with a port.
    pub host: &'t str,
    /// Its fields.
    pub fields: &'t dyn HasField,
}

/// Fields of a request.
pub trait HasField {
    /// Whether there is a field of this name, in lower case, with a value that `is_value`.
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool;
}

/// None are known.
impl HasField for () {
    fn has(&self, _: &str, _: &dyn Fn(&[u8]) -> bool) -> bool {
        false
    }
}

impl<'t> Asked<'t> {
    /// A request of which only this is known.
    pub const fn new(method: &'t str, target: &'t str) -> Self {
        Self { method, target, host: "", fields: &() }
    }

    fn path(&self) -> &'t str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.host, self.target)
    }
}

/// A pattern leads to a class, perhaps under a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The requests that it is for.
    pub pattern: Pattern,
    /// The host and the fields that such requests must have.
    pub condition: Condition,
    /// Their class.
    pub class: ClassId,
}

impl Rule {
    /// A rule without a condition.
    pub fn new(pattern: Pattern, class: ClassId) -> Self {
        Self { pattern, condition: Condition::default(), class }
    }
}

/// The same pattern under the same condition leads to two classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// The pattern.
    pub pattern: String,
}

impl fmt::Display for Tie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` stands in two classes", self.pattern)
    }
}

impl core::error::Error for Tie {}

#[cfg(test)]
mod tests;
