//! One pattern of a class: a method and a path.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use super::reading::{DEEPEST, PathReading};
use crate::request::ClassId;

/// Why a pattern, or a list of patterns, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// The text is not `METHOD /path`, or its path has more than [`DEEPEST`] segments.
    Form(String),
    /// The same pattern leads to two classes.
    Tie {
        /// The pattern.
        pattern: String,
        /// The class it was given first.
        first: ClassId,
        /// The class it was given then.
        second: ClassId,
    },
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => write!(
                f,
                "`{text}` is no pattern: write a method (or *) and a path, like \"GET /p/*\""
            ),
            Self::Tie { pattern, .. } => write!(f, "`{pattern}` stands in two classes"),
        }
    }
}

impl core::error::Error for PatternError {}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    segments: Vec<Segment>,
    method: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    // In the order of trying: a literal before a wildcard.
    Literal(String),
    One,
    Rest,
}

/// How a pattern fits a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fit {
    /// It matches the path.
    pub(super) exact: bool,
    /// It matches the path with a slash more at its end, or with one less.
    pub(super) toggled: bool,
}

impl Pattern {
    /// Reads `METHOD /path`.
    ///
    /// # Errors
    /// If the text is not of that form.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let fail = || PatternError::Form(text.to_string());
        let (method, path) = text.split_once(' ').ok_or_else(fail)?;
        let path = path.trim_start();
        let token = |c: char| c.is_ascii_uppercase() || c == '-';
        if !(method == "*" || !method.is_empty() && method.chars().all(token)) || !is_plain(path) {
            return Err(fail());
        }
        let mut segments: Vec<Segment> = path[1..].split('/').map(segment).collect();
        if segments.len() > DEEPEST {
            return Err(fail());
        }
        if let Some(last @ Segment::One) = segments.last_mut() {
            *last = Segment::Rest;
        }
        let method = (method != "*").then(|| method.to_string());
        Ok(Self { segments, method })
    }

    /// Whether requests of this method are meant. `GET` means `HEAD` as well (RFC 9110 §9.3.2): an
    /// application does the same work for both.
    pub(super) fn takes(&self, method: &str) -> bool {
        match self.method.as_deref() {
            None => true,
            Some("GET") => method == "GET" || method == "HEAD",
            Some(wanted) => wanted == method,
        }
    }

    /// How it fits a path, whatever the method.
    pub(super) fn fits(&self, path: &PathReading<'_>) -> Fit {
        let (rest, slash, named) = match self.segments.split_last() {
            Some((Segment::Rest, before)) => (true, false, before),
            Some((Segment::Literal(last), before)) if last.is_empty() => (false, true, before),
            _ => (false, false, self.segments.as_slice()),
        };
        let Some(more) = path.length().checked_sub(named.len()) else { return Fit::default() };
        let fits = |(at, segment): (usize, &Segment)| match segment {
            Segment::Literal(literal) => path.is(at, literal),
            Segment::One | Segment::Rest => !path.segment(at).is_empty(),
        };
        if (more > 0 && !rest) || !named.iter().enumerate().all(fits) {
            return Fit::default();
        }
        if more > 0 {
            return Fit { exact: true, toggled: true };
        }
        let exact = path.ends_with_slash() == (rest || slash);
        Fit { exact, toggled: !exact }
    }

    /// Which of two patterns is tried first. Equal only for the very same pattern, so that in
    /// order it stands beside itself.
    pub(super) fn precedence(&self, other: &Self) -> Ordering {
        // `HEAD` goes before `GET`, which means it as well.
        let method = |pattern: &Self| match pattern.method.as_deref() {
            None => 2,
            Some("HEAD") => 0,
            Some(_) => 1,
        };
        let paths = self.segments.cmp(&other.segments);
        let methods = || method(self).cmp(&method(other));
        paths.then_with(methods).then_with(|| self.method.cmp(&other.method))
    }
}

fn segment(text: &str) -> Segment {
    if text == "*" { Segment::One } else { Segment::Literal(text.to_string()) }
}

/// Whether a path may stand in a pattern: nobody can read it in another way.
fn is_plain(path: &str) -> bool {
    let odd = |part: &str| part == "." || part == "..";
    path.starts_with('/')
        && !path.contains("//")
        && !path.contains(['%', '\\', '?', '#', ';'])
        && !path.split('/').any(odd)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.method.as_deref().unwrap_or("*"))?;
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => write!(f, "/{text}")?,
                Segment::One | Segment::Rest => write!(f, "/*")?,
            }
        }
        Ok(())
    }
}
