//! Classification of requests: matches method and target against a list of patterns.
//!
//! A [`Pattern`] describes requests: `GET /p/**`, `POST /confirm`,
//! `/index.php?route=checkout/*&...`. The most specific pattern wins:
//!
//! - Paths are compared segment by segment from the left. A name goes before an ending (`*.html`),
//!   an ending before `*`, and `*` before `**`.
//! - For the same path, the pattern goes first that fixes more parameter values, then the one with
//!   more letters in them, then the one with more names.
//! - For the same target, `HEAD` goes before `GET`, and a method before `*`.
//!
//! Only the same pattern twice is a tie, which is an error when the list is built.
//!
//! A request that applications may read in several ways has the classes of all its readings, and it
//! is treated as the strictest of them would be ([`strict`]). An unusual spelling may lower a
//! request and never raises it, and rules for the plain spelling also apply to it. This holds for
//!
//! - paths ([`readings`]);
//! - **parameters that a pattern does not allow**: an application ignores unknown parameters. So
//!   the pattern's class is one of the request's classes, in addition to that of the pattern that
//!   takes the request literally;
//! - **repeated parameters**, lists (`a[]`) and more parameters than are read: one application
//!   takes the first value and another takes the last. So all patterns of the path that fit any of
//!   the values count, and the one without parameters as well;
//! - **parameters of several pages**: of two patterns for one path where neither has all parameters
//!   of the other, both count if both fit. Only the application knows which parameter decides;
//! - **fields**: any client may send any field. So a class with [`Condition::fields`] counts in
//!   addition to the class that the request would have without it.

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
pub use pattern::{BadPattern, Pattern, RequestLine, is_reading};
pub use reading::{DEEPEST, PathReading, decoded, readings};

/// The parts of a request that its class depends on.
#[derive(Clone, Copy)]
pub struct Asked<'t> {
    /// The request's method.
    pub method: &'t str,
    /// The request's canonical path and its query.
    pub target: &'t str,
    /// The host that the request is for, possibly with a port.
    pub host: &'t str,
    /// The request's fields.
    pub fields: &'t dyn HasField,
}

/// The fields of a request.
pub trait HasField {
    /// Returns whether there is a field of this name, in lower case, with a value that `is_value`.
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool;
}

/// A request without known fields.
impl HasField for () {
    fn has(&self, _: &str, _: &dyn Fn(&[u8]) -> bool) -> bool {
        false
    }
}

impl<'t> Asked<'t> {
    /// Creates a request of which only method and target are known.
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

/// A pattern that leads to a class, possibly under a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The requests that the rule is for.
    pub pattern: Pattern,
    /// The host and the fields that such requests must have.
    pub condition: Condition,
    /// The requests' class.
    pub class: ClassId,
}

impl Rule {
    /// Creates a rule without a condition.
    pub fn new(pattern: Pattern, class: ClassId) -> Self {
        Self { pattern, condition: Condition::default(), class }
    }
}

/// An error: the same pattern under the same condition leads to two classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// The pattern.
    pub pattern: String,
}

impl fmt::Display for Tie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is in two classes", self.pattern)
    }
}

impl core::error::Error for Tie {}

#[cfg(test)]
mod tests;
