//! Collects all errors of a scenario file, not only the first.

use crate::error::ScenarioError;

/// The errors found in a scenario file so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<(Option<usize>, ScenarioError)>,
    line: Option<usize>,
}

impl Problems {
    /// Sets the line for the errors that are added next; `None` if the line is not known.
    pub(crate) fn at(&mut self, line: Option<usize>) -> &mut Self {
        self.line = line;
        self
    }

    /// Adds the error `why` at the present line.
    pub(crate) fn add(&mut self, why: impl Into<String>) {
        self.found.push((self.line, ScenarioError::Invalid(why.into())));
    }

    pub(crate) fn require(&mut self, right: bool, why: impl Into<String>) {
        if !right {
            self.add(why);
        }
    }

    /// Returns the value of `part`. If `part` is an error, adds the error and returns `None`.
    pub(crate) fn part<T>(&mut self, part: Result<T, ScenarioError>) -> Option<T> {
        part.map_err(|error| self.found.push((self.line, error))).ok()
    }

    /// Returns those of `parts` that are values, and adds those that are errors.
    pub(crate) fn parts<T>(
        &mut self,
        parts: impl Iterator<Item = Result<T, ScenarioError>>,
    ) -> Vec<T> {
        parts.filter_map(|part| self.part(part)).collect()
    }

    /// Returns `whole` if there are no errors. Otherwise returns all errors as one, in the order of
    /// their lines. Its text has a line for each error, which begins with the line number in the
    /// file if that is known.
    pub(crate) fn whole<T>(mut self, whole: Option<T>) -> Result<T, ScenarioError> {
        if let (Some(whole), true) = (whole, self.found.is_empty()) {
            return Ok(whole);
        }
        if let [(None, _)] = self.found[..] {
            return Err(self.found.remove(0).1);
        }
        self.found.sort_by_key(|(line, _)| *line);
        let placed = self.found.iter().any(|(line, _)| line.is_some());
        let words = |(line, error): &(Option<usize>, ScenarioError)| match line {
            Some(line) => format!("line {line}: {error}"),
            None => error.to_string(),
        };
        let all: Vec<String> = self.found.iter().map(words).collect();
        Err(ScenarioError::Invalid(all.join(if placed { "\n" } else { "; " })))
    }
}
