//! What is wrong with a file, for people and for programs.

use std::fmt;
use std::ops::Range;

use crate::source::Source;

/// Whether a problem prevents the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not, and is hardly what was meant.
    Warning,
}

impl Severity {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One problem and its place. Nothing in its texts can command a terminal: what came from the
/// file is escaped and cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `E` or `W` and three digits; listed in [`reference`](crate::reference()).
    pub code: &'static str,
    /// Whether it prevents the start.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Bytes of the text that it is about, within one line.
    pub span: Range<usize>,
    /// What would be right.
    pub help: Option<String>,
    /// A second place that belongs to it.
    pub elsewhere: Option<Elsewhere>,
}

/// The other place of a problem between two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// What stands there.
    pub label: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Bytes of the text, within one line.
    pub span: Range<usize>,
}

/// Everything that is wrong with one file, in the order of the file.
///
/// `Display` draws all of it without colours; [`Problems::render`] lets the caller choose,
/// [`Problems::to_json`] is for programs.
#[derive(Clone, thiserror::Error)]
#[error("{}", self.render(false))]
pub struct Problems {
    pub(crate) text: Source,
    pub(crate) list: Vec<Problem>,
    pub(crate) more: usize,
}

impl Problems {
    /// The problems, at most [`Problems::MOST`].
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// How many are listed at most; a text can be wrong in more ways than anyone would read.
    pub const MOST: usize = 100;

    /// How many there were beyond those listed.
    pub const fn more(&self) -> usize {
        self.more
    }

    /// How many there are, listed or not.
    pub const fn len(&self) -> usize {
        self.list.len() + self.more
    }

    /// Whether there is nothing to complain about.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The name of the file, as it was given.
    pub fn file(&self) -> &str {
        &self.text.name
    }

    /// How many of a severity are listed.
    pub fn count(&self, severity: Severity) -> usize {
        self.iter().filter(|problem| problem.severity == severity).count()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}
