//! Collects problems while a file is read.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::code::Code;
use crate::problem::{Elsewhere, Problem, Problems, Severity};
use crate::source::Source;

/// The maximum number of problems that are kept, so that a hostile file does not exhaust memory. It
/// exceeds [`Problems::MOST`], because problems are sorted before the first ones of the file are
/// listed.
const KEPT: usize = 10 * Problems::MOST;

/// A problem whose position is still an offset in the text and not a line.
pub(crate) struct Finding {
    code: &'static Code,
    at: Range<usize>,
    message: String,
    help: Option<String>,
    elsewhere: Option<(Range<usize>, String)>,
}

impl Finding {
    pub(crate) fn new(code: &'static Code, at: Range<usize>, message: String) -> Self {
        Self { code, at, message, help: None, elsewhere: None }
    }

    pub(crate) fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }

    pub(crate) fn elsewhere(mut self, at: Range<usize>, label: &str) -> Self {
        self.elsewhere = Some((at, label.to_string()));
        self
    }
}

/// The problems found in one text.
pub(crate) struct Report {
    source: Source,
    found: Vec<Problem>,
    more: usize,
    failed: bool,
    /// The lines that are not valid TOML. Values recovered from such lines are guesses.
    broken: BTreeSet<usize>,
}

impl Report {
    pub(crate) const fn new(source: Source) -> Self {
        Self { source, found: Vec::new(), more: 0, failed: false, broken: BTreeSet::new() }
    }

    /// Adds a finding, unless the parser has already reported a syntax error in its line.
    pub(crate) fn add(&mut self, finding: Finding) {
        if !self.broken.contains(&self.source.line_of(finding.at.start)) {
            self.keep(finding);
        }
    }

    /// Adds a syntax error. Only the first of each line is kept, because the others follow from it.
    pub(crate) fn add_broken(&mut self, finding: Finding) {
        if self.broken.insert(self.source.line_of(finding.at.start)) {
            self.keep(finding);
        }
    }

    /// Marks the line of a position as not valid TOML, without reporting a problem.
    pub(crate) fn distrust(&mut self, at: &Range<usize>) {
        self.broken.insert(self.source.line_of(at.start));
    }

    /// Returns the number of the line of a position, from 1.
    pub(crate) fn line(&self, at: &Range<usize>) -> usize {
        self.source.line_of(at.start) + 1
    }

    /// Returns whether any part of the text is not valid TOML, so that keys may have been lost.
    pub(crate) fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    fn keep(&mut self, finding: Finding) {
        self.failed |= finding.code.severity() == Severity::Error;
        if self.found.len() < KEPT {
            let problem = self.locate(finding);
            self.found.push(problem);
        } else {
            self.more += 1;
        }
    }

    fn locate(&self, finding: Finding) -> Problem {
        let span = self.source.in_one_line(&finding.at);
        let (line, column) = self.source.position(span.start);
        Problem {
            code: finding.code.name,
            severity: finding.code.severity(),
            message: finding.message,
            line,
            column,
            span,
            help: finding.help,
            elsewhere: finding.elsewhere.map(|(at, label)| self.elsewhere(&at, label)),
        }
    }

    fn elsewhere(&self, at: &Range<usize>, label: String) -> Elsewhere {
        let span = self.source.in_one_line(at);
        let (line, column) = self.source.position(span.start);
        Elsewhere { label, line, column, span }
    }

    /// Returns `value` with the warnings if there is no error, otherwise all problems.
    pub(crate) fn finish<T>(mut self, value: T) -> Result<(T, Problems), Problems> {
        self.found.sort_by_key(|problem| problem.span.start);
        let beyond = self.found.len().saturating_sub(Problems::MOST);
        self.found.truncate(Problems::MOST);
        let more = self.more + beyond;
        let problems = Problems { text: self.source, list: self.found, more };
        if self.failed { Err(problems) } else { Ok((value, problems)) }
    }

    /// Returns the problems, with `finding` as the reason why the text cannot be read at all.
    pub(crate) fn give_up(mut self, finding: Finding) -> Problems {
        self.keep(finding);
        Problems { text: self.source, list: self.found, more: self.more }
    }
}
