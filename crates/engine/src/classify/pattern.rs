//! Patterns of requests, in the notation for classes, for rules and for learned routes.
//!
//! > [METHOD ]/segment/*/*.html/**?name&name=value&name=begin*&...
//!
//! - **Method**: a method in capitals, or `*` for any. `GET`, which may be omitted, includes
//!   `HEAD`.
//! - **Path**: `*` is any one segment, and `*.html` is one segment with this ending. `**` at the
//!   end is anything below, including the empty segment of `/a/`.
//! - **Parameters**: a pattern without `?` allows any parameters. A pattern with `?` requires the
//!   parameters that it lists, in any order, and allows no others. `...` in the list allows any
//!   others. `name` has any value, `name=value` has this value, and `name=begin*` has a value that
//!   begins with this text. A `?` with nothing after it means no parameters. Names and values are
//!   compared decoded.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use super::parameters::Parameters;
use super::query::{Query, QueryFit};
use super::reading::{DEEPEST, PathReading};

/// A pattern of requests. The greatest of several patterns that match a request is the most
/// specific.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    path: Path,
    query: Query,
    method: Method,
}

/// The path of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Path {
    segments: Vec<Segment>,
    /// Whether the pattern's path ends with `**`.
    rest: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    Name(String),
    /// Any segment with this ending. An empty ending matches every segment.
    Any(String),
}

/// The methods that a pattern matches. Less specific ones sort first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Method {
    Any,
    /// `GET` and `HEAD`, for which an application does the same work (RFC 9110 §9.3.2).
    Reads,
    /// One named method, which may be `HEAD`.
    Named(String),
}

/// The reason for which a text is not a valid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPattern {
    /// The pattern has more than 512 characters, or more than [`DEEPEST`] segments.
    Long,
    /// The text has no path.
    Path,
    /// The text in front of the path is not a method.
    Method,
    /// There is text after `**`, or in the same segment.
    Rest,
    /// There is a `*` inside a segment, where it is not allowed.
    Star,
    /// There is a character that a target cannot contain.
    Character,
    /// A parameter has an invalid name, a name is repeated, or there are too many parameters.
    Parameter,
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Long => "a pattern has at most 512 characters and 24 segments",
            Self::Path => "a pattern needs a path: write /export/**",
            Self::Method => {
                "in front of the path, write a method in capitals (or *) and a space, or nothing"
            }
            Self::Rest => "`**` must be the last segment, by itself",
            Self::Star => {
                "`*` must be a whole segment, be before its ending (/*/*.html) or at the end of a \
                 value"
            }
            Self::Character => "percent-encode spaces, # and characters that are not ASCII",
            Self::Parameter => {
                "after the `?`, write up to 8 names or name=value, each once, and perhaps `...`"
            }
        })
    }
}

impl core::error::Error for BadPattern {}

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        if text.len() > 512 {
            return Err(BadPattern::Long);
        }
        let (method, target) = match text.split_once(' ') {
            Some((method, target)) => (method, target),
            None => ("GET", text),
        };
        let method = match method {
            "*" => Method::Any,
            "GET" => Method::Reads,
            named if is_method(named) => Method::Named(named.into()),
            _ => return Err(BadPattern::Method),
        };
        if !target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(BadPattern::Character);
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, query),
            None => (target, "..."),
        };
        let path = path.strip_prefix('/').ok_or(BadPattern::Path)?;
        let (segments, rest) = segments(path)?;
        if segments.len() > DEEPEST {
            return Err(BadPattern::Long);
        }
        Ok(Self { path: Path { segments, rest }, query: Query::parse(query)?, method })
    }
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

fn segments(path: &str) -> Result<(Vec<Segment>, bool), BadPattern> {
    let mut segments = Vec::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        if part == "**" && parts.peek().is_none() {
            return Ok((segments, true));
        }
        segments.push(match part.strip_prefix('*') {
            Some(ending) if ending.starts_with('*') => return Err(BadPattern::Rest),
            Some(ending) if ending.contains('*') => return Err(BadPattern::Star),
            Some(ending) if !ending.is_empty() && !ending.starts_with('.') => {
                return Err(BadPattern::Star);
            }
            Some(ending) => Segment::Any(ending.into()),
            None if part.contains('*') => return Err(BadPattern::Star),
            None => Segment::Name(part.into()),
        });
    }
    Ok((segments, false))
}

/// A method and a target, prepared to be matched against many patterns. The parameters are parsed
/// at most once, and only if a path matches.
#[derive(Debug)]
pub struct RequestLine<'t> {
    pub(super) method: &'t str,
    path: Option<PathReading<'t>>,
    query: &'t str,
    parameters: OnceCell<Parameters<'t>>,
}

impl<'t> RequestLine<'t> {
    /// Creates the request line of a target: a path, and possibly a query.
    pub fn new(method: &'t str, target: &'t str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { method, path: PathReading::plain(path, false), query, parameters: OnceCell::new() }
    }

    /// Replaces the path by another reading of it.
    pub const fn read_as(&mut self, path: PathReading<'t>) {
        self.path = Some(path);
    }

    pub(super) fn parameters(&self) -> &Parameters<'t> {
        self.parameters.get_or_init(|| Parameters::read(self.query))
    }
}

impl Pattern {
    /// Returns whether the pattern matches a request with this method and target. The target is a
    /// path, possibly with a query.
    pub fn matches(&self, method: &str, target: &str) -> bool {
        self.is_of(&RequestLine::new(method, target))
    }

    /// Returns whether the pattern matches a prepared request line.
    pub fn is_of(&self, line: &RequestLine<'_>) -> bool {
        self.takes(line.method)
            && line.path.as_ref().is_some_and(|path| self.path.matches(path))
            && self.query_fit(line) == QueryFit::Exact
    }

    /// Returns whether the pattern matches requests with this method, whatever their target.
    pub(super) fn takes(&self, method: &str) -> bool {
        match &self.method {
            Method::Any => true,
            Method::Reads => is_reading(method),
            Method::Named(wanted) => wanted == method,
        }
    }

    pub(super) fn matches_path(&self, path: &PathReading<'_>) -> bool {
        self.path.matches(path)
    }

    /// Returns whether both patterns match the same paths.
    pub(super) fn has_path_of(&self, other: &Self) -> bool {
        self.path == other.path
    }

    /// Returns the first segment of the path if it is a fixed name, and otherwise `None`.
    pub(super) fn first_name(&self) -> Option<&str> {
        match self.path.segments.first()? {
            Segment::Name(name) => Some(name),
            Segment::Any(_) => None,
        }
    }

    /// Returns whether the pattern names parameters.
    pub(super) const fn names_parameters(&self) -> bool {
        self.query.names_parameters()
    }

    /// Returns whether applications differ on the value of a parameter that the pattern names.
    pub(super) fn is_doubtful_in(&self, given: &Parameters<'_>) -> bool {
        self.query.is_doubtful_in(given)
    }

    /// Returns how the query of a request line fits the parameters of the pattern.
    pub(super) fn query_fit(&self, line: &RequestLine<'_>) -> QueryFit {
        self.query.fit(|| line.parameters())
    }

    /// Returns whether each request with the parameters of this pattern also has those of the other
    /// pattern.
    pub(super) fn narrows_query_of(&self, other: &Self) -> bool {
        self.query.narrows(&other.query)
    }

    /// Returns whether the path of the pattern has only one reading. The configuration accepts only
    /// such patterns for classes.
    pub fn has_one_reading(&self) -> bool {
        let last = self.path.segments.len().saturating_sub(1);
        self.path.segments.iter().enumerate().all(|(at, segment)| match segment {
            Segment::Name(name) if name.is_empty() => at == last && !self.path.rest,
            Segment::Name(name) | Segment::Any(name) => {
                !name.contains(['%', '\\', ';']) && name != "." && name != ".."
            }
        })
    }

    /// Returns whether the pattern matches every request with its method.
    pub fn takes_all(&self) -> bool {
        let is_any =
            |segment: &Segment| matches!(segment, Segment::Any(ending) if ending.is_empty());
        let Path { segments, rest } = &self.path;
        (*rest || !segments.is_empty())
            && segments.iter().all(is_any)
            && !self.query.names_parameters()
    }

    /// Returns the pattern with its path in lower case, for an application that ignores the case of
    /// paths.
    #[must_use]
    pub(super) fn in_lower_case(mut self) -> Self {
        for Segment::Name(text) | Segment::Any(text) in &mut self.path.segments {
            text.make_ascii_lowercase();
        }
        self
    }

    /// Returns whether the pattern is more specific than the other one and some requests match
    /// both.
    pub fn refines(&self, other: &Self) -> bool {
        self.method == other.method
            && self.is_more_specific(other)
            && self.path.shares(&other.path)
            && self.query.shares(&other.query)
    }

    fn is_more_specific(&self, other: &Self) -> bool {
        let query = || self.query.specificity().cmp(&other.query.specificity());
        self.path.specificity(&other.path).then_with(query).is_gt()
    }

    /// Returns the same pattern with any other parameters allowed; `None` if it allows them
    /// already.
    pub fn with_others(&self) -> Option<Self> {
        Some(Self { query: self.query.with_others()?, ..self.clone() })
    }
}

/// Returns whether requests with this method only read: it is `GET` or `HEAD`.
pub fn is_reading(method: &str) -> bool {
    method == "GET" || method == "HEAD"
}

impl Path {
    fn matches(&self, path: &PathReading<'_>) -> bool {
        // A slash at the end of a path counts as an empty segment.
        let length = path.length() + usize::from(path.ends_with_slash());
        let fits = |(at, segment): (usize, &Segment)| match segment {
            Segment::Name(name) => path.is(at, name),
            Segment::Any(ending) => path.ends_with(at, ending),
        };
        let fitting = self.segments.len();
        (if self.rest { length > fitting } else { length == fitting })
            && self.segments.iter().enumerate().all(fits)
    }

    fn shares(&self, other: &Self) -> bool {
        let share = |(a, b): (&Segment, &Segment)| match (a, b) {
            (Segment::Name(a), Segment::Name(b)) => a == b,
            (Segment::Name(name), Segment::Any(ending))
            | (Segment::Any(ending), Segment::Name(name)) => name.ends_with(ending.as_str()),
            (Segment::Any(a), Segment::Any(b)) => {
                a.ends_with(b.as_str()) || b.ends_with(a.as_str())
            }
        };
        let (here, there) = (self.segments.len(), other.segments.len());
        let same_depth = match (self.rest, other.rest) {
            (false, false) => here == there,
            (true, false) => there > here,
            (false, true) => here > there,
            (true, true) => true,
        };
        same_depth && self.segments.iter().zip(&other.segments).all(share)
    }

    /// Compares two paths segment by segment from the left. The greater one is more specific: a
    /// name before an ending, a longer ending before a shorter one, and one segment before `**`.
    fn specificity(&self, other: &Self) -> Ordering {
        let rank = |path: &Self, at: usize| match path.segments.get(at) {
            Some(Segment::Name(_)) => (3, 0),
            Some(Segment::Any(ending)) => (2, ending.len()),
            None if path.rest => (0, 0),
            None => (1, 0),
        };
        let longest = self.segments.len().max(other.segments.len());
        let ranks = |path| (0..=longest).map(move |at| rank(path, at));
        ranks(self).cmp(ranks(other))
    }
}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    /// Compares two patterns by path, then by query, then by method. Patterns with the same path
    /// are therefore adjacent in a sorted list.
    fn cmp(&self, other: &Self) -> Ordering {
        let paths = || self.path.to_string().cmp(&other.path.to_string()).reverse();
        let queries = || self.query.specificity().cmp(&other.query.specificity());
        let methods = || self.method.cmp(&other.method);
        let texts = || self.to_string().cmp(&other.to_string()).reverse();
        self.path
            .specificity(&other.path)
            .then_with(paths)
            .then_with(queries)
            .then_with(methods)
            .then_with(texts)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Name(name) => write!(f, "/{name}")?,
                Segment::Any(ending) => write!(f, "/*{ending}")?,
            }
        }
        if self.rest { f.write_str("/**") } else { Ok(()) }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.method {
            Method::Any => f.write_str("* ")?,
            Method::Reads => {}
            Method::Named(method) => write!(f, "{method} ")?,
        }
        write!(f, "{}{}", self.path, self.query)
    }
}
