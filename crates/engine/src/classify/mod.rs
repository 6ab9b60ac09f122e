//! Classification: finds the class of a request by matching its method and target against patterns.
//!
//! A [`Pattern`] describes requests: `GET /p/**`, `POST /confirm`,
//! `/index.php?route=checkout/*&...`. The most specific pattern wins:
//!
//! - Paths are compared segment by segment from the left. A name goes before an ending (`*.html`),
//!   an ending before `*`, and `*` before `**`.
//! - For the same path, the pattern that fixes more parameter values goes first, then the one with
//!   more letters in these values, then the one with more names.
//! - For the same target, `HEAD` goes before `GET`, and a method before `*`.
//!
//! Two patterns tie only if they are the same. A tie is an error when the list is built.
//!
//! A request that applications may read in several ways has the classes of all its readings. It is
//! treated as the strictest of them would be ([`strict`]). So an unusual spelling may make the
//! treatment of a request worse, but never better. Rules for the plain spelling also apply to an
//! unusual one. There are several causes of more than one class:
//!
//! - **Paths** with several [`readings`].
//! - **Parameters that a pattern does not allow.** An application ignores unknown parameters. So
//!   the pattern's class is one of the request's classes, in addition to that of the pattern that
//!   takes the request literally.
//! - **Repeated parameters**, lists (`a[]`) and more parameters than are read. One application
//!   takes the first value and another takes the last. So all patterns of the path that fit any of
//!   the values count, and the one without parameters as well.
//! - **Parameters of several pages.** If neither of two patterns for one path has all parameters of
//!   the other, both count if both fit. Only the application knows which parameter decides.
//! - **Fields.** Any client may send any field. So a class with [`Condition::fields`] counts in
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

/// The parts of a request by which it is classified.
#[derive(Clone, Copy)]
pub struct RequestParts<'t> {
    /// The request's method.
    pub method: &'t str,
    /// The request's canonical path and its query.
    pub target: &'t str,
    /// The host that the request names, possibly with a port.
    pub host: &'t str,
    /// The request's header fields.
    pub fields: &'t dyn HasField,
}

/// Access to the header fields of a request by their names.
pub trait HasField {
    /// Returns whether the request has a field named `name` (in lower case) with a value for which
    /// `is_value` returns true.
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool;
}

/// Stands for a request whose header fields are unknown: no field is present.
impl HasField for () {
    fn has(&self, _: &str, _: &dyn Fn(&[u8]) -> bool) -> bool {
        false
    }
}

impl<'t> RequestParts<'t> {
    /// Creates a request of which only method and target are known.
    pub const fn new(method: &'t str, target: &'t str) -> Self {
        Self { method, target, host: "", fields: &() }
    }

    fn path(&self) -> &'t str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }
}

impl fmt::Debug for RequestParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.host, self.target)
    }
}

/// A rule that gives a class to the requests that match a pattern and meet a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The pattern that a request must match.
    pub pattern: Pattern,
    /// The host and the fields that a request must have in addition.
    pub condition: Condition,
    /// The class that the rule gives to these requests.
    pub class: ClassId,
}

impl Rule {
    /// Creates a rule without a condition on host and fields.
    pub fn new(pattern: Pattern, class: ClassId) -> Self {
        Self { pattern, condition: Condition::default(), class }
    }
}

/// The error that two rules with the same pattern and the same condition give different classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// The pattern of both rules, as text.
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
