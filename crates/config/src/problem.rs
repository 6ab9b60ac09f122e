//! The problems of a file, for people and for programs.

use std::fmt;
use std::ops::Range;

use crate::source::Source;

/// Whether a problem prevents the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The start is refused.
    Error,
    /// The start continues, but the file hardly says what was meant.
    Warning,
}

impl Severity {
    /// Returns the name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One problem and its position. Its texts cannot control a terminal: text from the file is escaped
/// and truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `E` or `W` and three digits; listed in [`reference`](crate::reference()).
    pub code: &'static str,
    /// Whether it prevents the start.
    pub severity: Severity,
    /// The message, one sentence.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The bytes of the text that the problem is about, within one line.
    pub span: Range<usize>,
    /// The suggested correction.
    pub help: Option<String>,
    /// A second position that the problem involves.
    pub elsewhere: Option<Elsewhere>,
}

/// The second position of a problem between two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The label of the position.
    pub label: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The bytes of the text, within one line.
    pub span: Range<usize>,
}

/// All problems of one file, in the order of the file.
///
/// `Display` draws all of them without colours. [`Problems::render`] lets the caller choose, and
/// [`Problems::to_json`] serves programs.
#[derive(Clone, thiserror::Error)]
#[error("{}", self.render(false))]
pub struct Problems {
    pub(crate) text: Source,
    pub(crate) list: Vec<Problem>,
    pub(crate) more: usize,
}

impl Problems {
    /// Returns the listed problems, at most [`Problems::MOST`].
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// The most problems that are listed; a text can have more than anyone would read.
    pub const MOST: usize = 100;

    /// Returns the number of problems beyond those listed.
    pub const fn more(&self) -> usize {
        self.more
    }

    /// Returns the number of problems, listed or not.
    pub const fn len(&self) -> usize {
        self.list.len() + self.more
    }

    /// Returns whether there are no problems.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the name of the file, as it was given.
    pub fn file(&self) -> &str {
        &self.text.name
    }

    /// Returns the number of listed problems of a severity.
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
