//! The TOML form of a scenario's policies: a name, and parameters that only the catalogue can
//! check.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::file::{Charge, PartChoice, PolicyChoice, ScenarioError};
use crate::servers::Departures;
use crate::throttle;

#[derive(Deserialize)]
pub(crate) struct Written {
    name: String,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    limit: Option<Part>,
    #[serde(default)]
    termination: Option<Part>,
    #[serde(default)]
    charge: Charge,
    #[serde(default)]
    departures: Departures,
    #[serde(default)]
    throttle: Vec<throttle::Written>,
    #[serde(flatten)]
    parameters: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct Part {
    name: String,
    #[serde(flatten)]
    parameters: BTreeMap<String, toml::Value>,
}

impl Written {
    /// Resolves a policy that stands in this line; `find` maps the name of a class to its index.
    pub(crate) fn resolve(
        self,
        line: Option<usize>,
        find: impl Fn(&str) -> Result<usize, ScenarioError>,
    ) -> Result<PolicyChoice, ScenarioError> {
        let part = |part: Part| PartChoice { name: part.name, parameters: texts(part.parameters) };
        let throttles = self.throttle.iter().map(|throttle| throttle.resolve(&find));
        Ok(PolicyChoice {
            throttles: throttles.collect::<Result<_, _>>()?,
            label: self.label.unwrap_or_else(|| self.name.clone()),
            parameters: texts(self.parameters),
            limit: self.limit.map(part),
            termination: self.termination.map(part),
            charge: self.charge,
            departures: self.departures,
            name: self.name,
            line,
        })
    }
}

fn texts(parameters: BTreeMap<String, toml::Value>) -> BTreeMap<String, String> {
    let text = |value: toml::Value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    parameters.into_iter().map(|(name, value)| (name, text(value))).collect()
}
