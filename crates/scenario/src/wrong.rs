//! Everything that is wrong with a scenario, not only what was found first.

use crate::file::ScenarioError;

/// What is wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Wrong {
    found: Vec<(Option<usize>, ScenarioError)>,
    line: Option<usize>,
}

impl Wrong {
    /// What is found next stands in this line, if it is known.
    pub(crate) fn at(&mut self, line: Option<usize>) -> &mut Self {
        self.line = line;
        self
    }

    /// This is.
    pub(crate) fn add(&mut self, why: impl Into<String>) {
        self.found.push((self.line, ScenarioError::Senseless(why.into())));
    }

    pub(crate) fn unless(&mut self, right: bool, why: impl Into<String>) {
        if !right {
            self.add(why);
        }
    }

    /// A part of the scenario, if it makes sense.
    pub(crate) fn part<T>(&mut self, part: Result<T, ScenarioError>) -> Option<T> {
        part.map_err(|error| self.found.push((self.line, error))).ok()
    }

    /// All parts of a list that make sense.
    pub(crate) fn parts<T>(
        &mut self,
        parts: impl Iterator<Item = Result<T, ScenarioError>>,
    ) -> Vec<T> {
        parts.filter_map(|part| self.part(part)).collect()
    }

    /// The whole, if nothing was wrong with any part of it. What is known to stand in a line is told with
    /// it, in the order of lines and a line each.
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
        Err(ScenarioError::Senseless(all.join(if placed { "\n" } else { "; " })))
    }
}
