//! Everything that is wrong with a scenario, not only what was found first.

use crate::file::ScenarioError;

/// What is wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Wrong(Vec<ScenarioError>);

impl Wrong {
    /// This is.
    pub(crate) fn add(&mut self, why: impl Into<String>) {
        self.0.push(ScenarioError::Senseless(why.into()));
    }

    pub(crate) fn unless(&mut self, right: bool, why: impl Into<String>) {
        if !right {
            self.add(why);
        }
    }

    /// A part of the scenario, if it makes sense.
    pub(crate) fn part<T>(&mut self, part: Result<T, ScenarioError>) -> Option<T> {
        part.map_err(|error| self.0.push(error)).ok()
    }

    /// All parts of a list that make sense.
    pub(crate) fn parts<T>(
        &mut self,
        parts: impl Iterator<Item = Result<T, ScenarioError>>,
    ) -> Vec<T> {
        parts.filter_map(|part| self.part(part)).collect()
    }

    /// The whole, if nothing was wrong with any part of it.
    pub(crate) fn whole<T>(mut self, whole: Option<T>) -> Result<T, ScenarioError> {
        match (self.0.len(), whole) {
            (0, Some(whole)) => Ok(whole),
            (1, _) => Err(self.0.remove(0)),
            _ => {
                let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
                Err(ScenarioError::Senseless(all.join("; ")))
            }
        }
    }
}
