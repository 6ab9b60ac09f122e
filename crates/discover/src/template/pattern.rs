//! Which requests are of a kind, as a text that names the kind.
//!
//! > [METHOD ]/segment/*/*.html/**?name&name=value&...
//!
//! A method stands there where it is neither GET nor HEAD. `*` is one segment, `*.html` one that ends so, `**` at the end
//! one or more. Without a `?` a request has no parameters; with one it has these and no others, in any order; `...`
//! stands for any others. `name=value` is a parameter of that value. Names and values are compared decoded.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::fmt;
use core::str::FromStr;

use bywash_engine::classify::{DEEPEST, PathReading};

use super::parameters::{self, Parameters, may_be_name, name_of, value_of};

/// A kind of requests. Of several that match one request the greatest is the most specific.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    method: Option<String>,
    segments: Vec<Segment>,
    /// `**` at the end.
    rest: bool,
    parameters: Vec<(String, Option<String>)>,
    /// `...`: and any others.
    others: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    Name(String),
    /// With this ending, which may be nothing.
    Any(String),
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPattern {
    /// It is longer, or deeper, than a target that is looked at.
    Long,
    /// There is no path.
    Path,
    /// What stands in front of the path is no method.
    Method,
    /// Something stands behind `**`, or beside it in its segment.
    Rest,
    /// A `*` stands within a segment.
    Star,
    /// A character that no target has.
    Character,
    /// A parameter has no name, or more than one.
    Parameter,
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Long => "a pattern has at most 512 characters and 24 segments",
            Self::Path => "a pattern is a path: write /export/*",
            Self::Method => {
                "in front of the path stands a method in capitals and a space, or nothing"
            }
            Self::Rest => "`**` is the last segment, by itself",
            Self::Star => "`*` is a whole segment, or stands before its ending: /*/*.html",
            Self::Character => "write what no URL has as it is percent-encoded",
            Self::Parameter => {
                "behind the `?` stand up to 8 names, or name=value, each once, and perhaps `...`"
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
            Some((method, target)) => (Some(method), target),
            None => (None, text),
        };
        if method.is_some_and(|m| m.is_empty() || !m.bytes().all(|byte| byte.is_ascii_uppercase()))
        {
            return Err(BadPattern::Method);
        }
        if !target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(BadPattern::Character);
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let path = path.strip_prefix('/').ok_or(BadPattern::Path)?;
        let (segments, rest) = segments(path)?;
        if segments.len() > DEEPEST {
            return Err(BadPattern::Long);
        }
        let (parameters, others) = parameters(query.unwrap_or_default())?;
        let method = method.filter(|method| !is_reading(method)).map(String::from);
        Ok(Self { method, segments, rest, parameters, others })
    }
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

type Named = Vec<(String, Option<String>)>;

fn parameters(query: &str) -> Result<(Named, bool), BadPattern> {
    let (mut named, mut others) = (Named::new(), false);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        if part == "..." {
            others = true;
            continue;
        }
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name_of(name), Some(value_of(value).into_owned())),
            None => (name_of(part), None),
        };
        let is_new = named.iter().all(|(known, _)| *known != name);
        if !may_be_name(&name) || !is_new || named.len() == parameters::MOST {
            return Err(BadPattern::Parameter);
        }
        named.push((name.into_owned(), value));
    }
    named.sort_unstable();
    Ok((named, others))
}

/// Whether a method asks to see something and for nothing else.
pub(super) fn is_reading(method: &str) -> bool {
    method == "GET" || method == "HEAD"
}

/// A method and a target, to be held against many patterns: its parameters are read once, and only if a path matches.
#[derive(Debug)]
pub struct Line<'t> {
    method: &'t str,
    path: Option<PathReading<'t>>,
    query: &'t str,
    parameters: OnceCell<Parameters<'t>>,
}

impl<'t> Line<'t> {
    /// Of a request for this target, a path and perhaps a query.
    pub fn new(method: &'t str, target: &'t str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { method, path: PathReading::plain(path, false), query, parameters: OnceCell::new() }
    }

    /// Reads its path otherwise.
    pub const fn read_as(&mut self, path: PathReading<'t>) {
        self.path = Some(path);
    }

    fn parameters(&self) -> &Parameters<'t> {
        self.parameters.get_or_init(|| Parameters::read(self.query))
    }
}

impl Pattern {
    /// Whether a request of this method for this target, a path and perhaps a query, is of this kind.
    pub fn matches(&self, method: &str, target: &str) -> bool {
        self.is_of(&Line::new(method, target))
    }

    /// The same of one that is held against many.
    pub fn is_of(&self, line: &Line<'_>) -> bool {
        let is_method = match &self.method {
            Some(wanted) => wanted == line.method,
            None => is_reading(line.method),
        };
        is_method
            && line.path.as_ref().is_some_and(|path| self.matches_path(path))
            && self.matches_query(line)
    }

    /// Whether it is more specific than the other, and there are requests that both match.
    pub fn refines(&self, other: &Self) -> bool {
        self.method == other.method
            && self.specificity() > other.specificity()
            && self.shares_path(other)
            && self.shares_query(other)
    }

    fn shares_path(&self, other: &Self) -> bool {
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

    fn shares_query(&self, other: &Self) -> bool {
        let takes = |pattern: &Self, (name, value): &(String, Option<String>)| match pattern
            .parameters
            .iter()
            .find(|(known, _)| known == name)
        {
            Some((_, Some(known))) => value.as_ref().is_none_or(|value| value == known),
            Some((_, None)) => true,
            None => pattern.others,
        };
        self.parameters.iter().all(|one| takes(other, one))
            && other.parameters.iter().all(|one| takes(self, one))
    }

    fn matches_path(&self, path: &PathReading<'_>) -> bool {
        // The slash at the end makes an empty segment.
        let length = path.length() + usize::from(path.ends_with_slash());
        let fits = |(at, segment): (usize, &Segment)| match segment {
            Segment::Name(name) => path.is(at, name),
            Segment::Any(ending) => path.ends_with(at, ending),
        };
        let fitting = self.segments.len();
        (if self.rest { length > fitting } else { length == fitting })
            && self.segments.iter().enumerate().all(fits)
    }

    fn matches_query(&self, line: &Line<'_>) -> bool {
        let given = line.parameters();
        if given.are_too_many() {
            return self.others;
        }
        self.parameters.iter().all(|(name, value)| given.has(name, value.as_deref()))
            && (self.others || given.are(self.parameters.len()))
    }

    /// The same with any other parameters, if it does not take them already.
    pub fn with_others(&self) -> Option<Self> {
        (!self.others).then(|| Self { others: true, ..self.clone() })
    }

    /// Names, then endings, then values of parameters, then names of parameters; who leaves others out is more specific.
    fn specificity(&self) -> (usize, usize, bool, usize, usize, usize, bool) {
        let ends = |part: &&Segment| matches!(part, Segment::Any(ending) if !ending.is_empty());
        let endings = self.segments.iter().filter(ends).count();
        let names = self.segments.iter().filter(|part| matches!(part, Segment::Name(_))).count();
        let values = self.parameters.iter().filter(|(_, value)| value.is_some()).count();
        (
            names,
            self.segments.len(),
            !self.rest,
            endings,
            values,
            self.parameters.len(),
            !self.others,
        )
    }
}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        let text = |pattern: &Self| alloc::format!("{pattern}");
        let by_text = || text(other).cmp(&text(self));
        self.specificity().cmp(&other.specificity()).then_with(by_text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(method) = &self.method {
            write!(f, "{method} ")?;
        }
        for segment in &self.segments {
            match segment {
                Segment::Name(name) => write!(f, "/{name}")?,
                Segment::Any(ending) => write!(f, "/*{ending}")?,
            }
        }
        if self.rest {
            f.write_str("/**")?;
        }
        let mut sign = '?';
        for (name, value) in &self.parameters {
            write!(f, "{sign}{name}")?;
            if let Some(value) = value {
                write!(f, "={value}")?;
            }
            sign = '&';
        }
        if self.others { write!(f, "{sign}...") } else { Ok(()) }
    }
}
