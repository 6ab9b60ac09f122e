//! Which class a request is of: method and path against a list of patterns.
//!
//! A pattern is a method or `*`, a space, and a path: `GET /`, `POST /confirm`, `GET /p/*`,
//! `* /shop/*/reviews`. A `*` segment stands for one segment, at the end for the rest of the
//! path. The most specific pattern wins: compared segment by segment from the left, a literal
//! goes before `*`, and where paths are alike a method goes before `*`. Only the very same
//! pattern twice is a tie, and that is an error when the list is made.
//!
//! A path that is not in plain form (escapes, empty or dot segments) matches no pattern and gets
//! the default class: an odd spelling may lower a request and never raise it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::request::ClassId;

/// Patterns in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Vec<(Pattern, ClassId)>,
    default: ClassId,
}

/// What is wrong with a pattern or a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// No `METHOD /path`.
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

impl Pattern {
    /// Reads `METHOD /path`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let fail = || PatternError::Form(text.to_string());
        let (method, path) = text.split_once(' ').ok_or_else(fail)?;
        let path = path.trim_start();
        let token = |c: char| c.is_ascii_uppercase() || c == '-';
        if !(method == "*" || !method.is_empty() && method.chars().all(token)) || !is_plain(path) {
            return Err(fail());
        }
        let mut segments: Vec<Segment> = path[1..].split('/').map(segment).collect();
        if let Some(last @ Segment::One) = segments.last_mut() {
            *last = Segment::Rest;
        }
        let method = (method != "*").then(|| method.to_string());
        Ok(Self { segments, method })
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        if self.method.as_deref().is_some_and(|wanted| wanted != method) {
            return false;
        }
        let mut parts = path[1..].split('/');
        for segment in &self.segments {
            match (segment, parts.next()) {
                (Segment::Rest, Some(_)) => return true,
                (Segment::One, Some(part)) if !part.is_empty() => {}
                (Segment::Literal(literal), Some(part)) if literal == part => {}
                _ => return false,
            }
        }
        parts.next().is_none()
    }

    /// Which of two patterns is tried first. Equal only for the very same pattern, so that in
    /// order it stands beside itself.
    fn precedence(&self, other: &Self) -> Ordering {
        let paths = self.segments.cmp(&other.segments);
        let any_method = || self.method.is_none().cmp(&other.method.is_none());
        paths.then_with(any_method).then_with(|| self.method.cmp(&other.method))
    }
}

fn segment(text: &str) -> Segment {
    if text == "*" { Segment::One } else { Segment::Literal(text.to_string()) }
}

/// Whether a path is in the one form that patterns are compared with.
fn is_plain(path: &str) -> bool {
    let odd = |part: &str| part == "." || part == "..";
    path.starts_with('/')
        && !path.contains("//")
        && !path.contains(['%', '\\', '?', '#', ';'])
        && !path.split('/').any(odd)
}

impl Classifier {
    /// Puts patterns in order. All mistakes at once.
    pub fn new(
        patterns: impl IntoIterator<Item = (Pattern, ClassId)>,
        default: ClassId,
    ) -> Result<Self, Vec<PatternError>> {
        let mut rules: Vec<(Pattern, ClassId)> = patterns.into_iter().collect();
        rules.sort_by(|(a, _), (b, _)| a.precedence(b));
        let tie = |pair: &[(Pattern, ClassId)]| (pair[0].0 == pair[1].0).then(|| pair_error(pair));
        let errors: Vec<PatternError> = rules.windows(2).filter_map(tie).collect();
        if errors.is_empty() { Ok(Self { rules, default }) } else { Err(errors) }
    }

    /// The same patterns for classes with other numbers.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(ClassId) -> ClassId) -> Self {
        let rules = self.rules.iter().map(|(pattern, class)| (pattern.clone(), number(*class)));
        Self { rules: rules.collect(), default: number(self.default) }
    }

    /// The class of a request. `path` is without the query.
    pub fn class(&self, method: &str, path: &str) -> ClassId {
        if !is_plain(path) {
            return self.default;
        }
        let rule = self.rules.iter().find(|(pattern, _)| pattern.matches(method, path));
        rule.map_or(self.default, |(_, class)| *class)
    }
}

fn pair_error(pair: &[(Pattern, ClassId)]) -> PatternError {
    PatternError::Tie { pattern: pair[0].0.to_string(), first: pair[0].1, second: pair[1].1 }
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

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERNS: [&str; 8] = [
        "GET /",
        "GET /p/*",
        "* /p/*",
        "GET /p/new",
        "* /shop/*/reviews",
        "* /shop/*",
        "POST /confirm",
        "* /*",
    ];

    fn classifier() -> Classifier {
        let rule = |(i, text): (usize, &&str)| (Pattern::parse(text).unwrap(), ClassId(i as u8));
        Classifier::new(PATTERNS.iter().enumerate().map(rule), ClassId(63)).unwrap()
    }

    #[test]
    fn the_most_specific_pattern_wins() {
        let cases = [
            ("GET", "/", "GET /"),
            ("POST", "/", "* /*"),
            ("GET", "/p/1", "GET /p/*"),
            ("GET", "/p/1/2", "GET /p/*"),
            ("PUT", "/p/1", "* /p/*"),
            ("GET", "/p/new", "GET /p/new"),
            ("GET", "/shop/7/reviews", "* /shop/*/reviews"),
            ("GET", "/shop/7/reviews/2", "* /shop/*"),
            ("POST", "/confirm", "POST /confirm"),
            ("GET", "/confirm", "* /*"),
        ];
        for (method, path, expected) in cases {
            let class = classifier().class(method, path);
            assert_eq!(PATTERNS[class.index()], expected, "{method} {path}");
        }
    }

    #[test]
    fn an_odd_spelling_gets_the_default_class() {
        for path in ["/%63onfirm", "//confirm", "/x/../confirm", "/confirm;a", "confirm", "*", ""] {
            assert_eq!(classifier().class("POST", path), ClassId(63), "{path}");
        }
    }

    #[test]
    fn the_same_pattern_in_two_classes_is_an_error() {
        let pattern = || Pattern::parse("GET /p/*").unwrap();
        let rules = [(pattern(), ClassId(0)), (pattern(), ClassId(1))];
        let errors = Classifier::new(rules, ClassId(2)).unwrap_err();
        assert_eq!(errors[0].to_string(), "`GET /p/*` stands in two classes");
    }

    #[test]
    fn nonsense_is_no_pattern() {
        for text in ["", "/", "GET", "GET p", "get /", "GET /a//b", "GET /a?b=1", "G T /"] {
            assert!(Pattern::parse(text).is_err(), "{text:?}");
        }
    }
}
