//! The problems of a configuration file, in a form for people and for programs.

use std::fmt;
use std::ops::Range;

use crate::source::Source;

/// The severity of a problem: whether it prevents the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The problem prevents the start.
    Error,
    /// The start continues, but the file may not do what its author meant.
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

/// A problem of a configuration file, with its position. Its texts cannot control a terminal: text
/// from the file is escaped and truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The code: `E` or `W` and three digits. All codes are listed in
    /// [`reference`](crate::reference()).
    pub code: &'static str,
    /// Whether the problem prevents the start.
    pub severity: Severity,
    /// The message, one sentence.
    pub message: String,
    /// The line of the problem, from 1.
    pub line: usize,
    /// The column of the problem in characters, from 1.
    pub column: usize,
    /// The range of bytes in the text that the problem is about, within one line.
    pub span: Range<usize>,
    /// The suggested correction; `None` if none can be guessed.
    pub help: Option<String>,
    /// The second position of the problem, if it is about two.
    pub elsewhere: Option<Elsewhere>,
}

/// The second position of a problem that is about two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The text that explains the second position.
    pub label: String,
    /// The line of the second position, from 1.
    pub line: usize,
    /// The column of the second position in characters, from 1.
    pub column: usize,
    /// The range of bytes in the text, within one line.
    pub span: Range<usize>,
}

/// The problems of one file, in the order of the file.
///
/// `Display` writes all of them without colours. With [`Problems::render`] the caller chooses
/// whether to use colours. [`Problems::to_json`] is for programs.
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

    /// The maximum number of problems that are listed. A hostile file can have more than anyone
    /// would read.
    pub const MOST: usize = 100;

    /// Returns the number of problems beyond those that are listed.
    pub const fn more(&self) -> usize {
        self.more
    }

    /// Returns the total number of problems, listed or not.
    pub const fn len(&self) -> usize {
        self.list.len() + self.more
    }

    /// Returns whether the file has no problems.
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
